"""The workers of a group and their REST API, which any of them serves."""

import json
import time
import urllib.error
import urllib.request
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tests.connect.chaos.worker import SESSION_TIMEOUT_S, WorkerProcess

REQUEST_TIMEOUT_S = 20.0
DEADLINE_S = 90.0
RETRY_PAUSE_S = 0.2

WORKER_SETTINGS = {
    "group.id": "chaos",
    "config.storage.topic": "chaos-configs",
    "offset.storage.topic": "chaos-offsets",
    "offset.storage.partitions": "3",
    "status.storage.topic": "chaos-status",
    "status.storage.partitions": "2",
    "config.storage.replication.factor": "-1",
    "offset.storage.replication.factor": "-1",
    "status.storage.replication.factor": "-1",
    "exactly.once.source.support": "enabled",
    "session.timeout.ms": str(int(SESSION_TIMEOUT_S * 1000)),
    "heartbeat.interval.ms": "500",
    "rebalance.timeout.ms": "15000",
    "barnabas.restart.initial.ms": "200",
    "barnabas.restart.max.ms": "2000",
    "spark.master": "local[2, 3]",
    "spark.driver.memory": "512m",
}


class ReportedStatus(NamedTuple):
    """The state of a connector or task, and the worker that runs it."""

    state: str
    worker_id: str


class UnexpectedResponseError(Exception):
    """A request had no other response until its deadline."""


class ConnectGroup:
    def __init__(self, bootstrap_servers: str, workers: int, directory: Path, source: Path) -> None:
        self._settings = {**WORKER_SETTINGS, "bootstrap.servers": bootstrap_servers}
        self.workers = [
            WorkerProcess(number, directory, source) for number in range(1, workers + 1)
        ]

    def start(self, worker: WorkerProcess) -> None:
        worker.start(self._settings)

    def close(self) -> None:
        for worker in self.workers:
            worker.close()

    def log_tails(self) -> str:
        return "\n\n".join(worker.log_tail() for worker in self.workers)

    # REST

    def send(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        expected: Collection[int] = (200, 201, 202, 204),
        deadline_s: float = DEADLINE_S,
    ) -> Any:
        """Repeats the request, to one worker after another, until its status is expected.

        Workers that do not run, are rebalancing or cannot reach brokers reject requests.
        """
        end_s = time.monotonic() + deadline_s
        last = "no worker runs"
        while time.monotonic() < end_s:
            for worker in self.workers:
                if not worker.is_responsive:
                    continue
                try:
                    status, content = request(worker.url, method, path, body)
                except OSError as error:
                    last = f"{worker}: {error}"
                    continue
                if status in expected:
                    return content
                last = f"{worker}: {status} {content}"
            time.sleep(RETRY_PAUSE_S)
        raise UnexpectedResponseError(f"{method} {path}: {last}")

    def statuses(self, worker: WorkerProcess) -> dict[str, ReportedStatus]:
        """Returns the states of connectors and tasks as this worker has them. Raises OSError."""
        status, content = request(worker.url, "GET", "/connectors?expand=status", timeout_s=2)
        if status != 200:
            raise ConnectionError(f"{worker}: {status} {content}")
        found = {}
        for name, expanded in content.items():
            if "status" not in expanded:
                continue
            connector, tasks = expanded["status"]["connector"], expanded["status"]["tasks"]
            found[name] = ReportedStatus(connector["state"], connector["worker_id"])
            for task in tasks:
                found[f"{name}-{task['id']}"] = ReportedStatus(task["state"], task["worker_id"])
        return found

    def is_healthy(self, worker: WorkerProcess) -> bool:
        if not worker.is_responsive:
            return False
        try:
            return request(worker.url, "GET", "/health", timeout_s=2)[0] == 200
        except OSError:
            return False

    def healthy(self) -> list[WorkerProcess]:
        return [worker for worker in self.workers if self.is_healthy(worker)]

    def state(self, connector: str) -> str | None:
        """Returns the state of a connector, None if no worker has one."""
        return next((each.state for each in self._found(connector)), None)

    def not_running(self, names: Sequence[str]) -> list[str]:
        """Returns what is not RUNNING, on a healthy worker, of connectors and their tasks."""
        living = {worker.id for worker in self.healthy()}
        for worker in self.workers:
            if not worker.is_responsive:
                continue
            try:
                found = self.statuses(worker)
            except OSError:
                continue
            missing = [f"{name} is missing" for name in names if f"{name}-0" not in found]
            return missing + [
                f"{name} is {status.state} on {status.worker_id}"
                for name, status in found.items()
                if status.state != "RUNNING" or status.worker_id not in living
            ]
        return ["no worker responds"]

    def _found(self, connector: str) -> list[ReportedStatus]:
        for worker in self.workers:
            if worker.is_responsive:
                try:
                    found = self.statuses(worker)
                except OSError:
                    continue
                return [found[connector]] if connector in found else []
        return []


def request(
    url: str,
    method: str,
    path: str,
    body: object = None,
    *,
    timeout_s: float = REQUEST_TIMEOUT_S,
) -> tuple[int, Any]:
    """Returns the status and the content. Raises OSError if there is no response."""
    sent = urllib.request.Request(
        url + path,
        None if body is None else json.dumps(body).encode(),
        {"Content-Type": "application/json"},
        method=method,
    )
    try:
        with urllib.request.urlopen(sent, timeout=timeout_s) as response:
            return response.status, _parse(response.read())
    except urllib.error.HTTPError as error:
        return error.code, _parse(error.read())
    except (ValueError, EOFError) as error:  # it was cut off
        raise ConnectionError(str(error)) from error
    except urllib.error.URLError as error:
        raise ConnectionError(str(error.reason)) from error


def _parse(content: bytes) -> Any:
    try:
        return json.loads(content) if content.strip() else None
    except ValueError:
        return content.decode(errors="replace")[:200]
