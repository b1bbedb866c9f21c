"""Workers of Connect as processes, and requests to their REST API."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.conformance.brokers import PEERS
from tests.wait import wait_until

from barnabas.testing.ports import free_port

KAFKA_VERSION = os.environ.get("KAFKA_VERSION", "4.3.1")
_CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "barnabas-peers"
_JSON_CONVERTER = "org.apache.kafka.connect.json.JsonConverter"


@dataclass(slots=True, frozen=True)
class RestResponse:
    status: int
    headers: Mapping[str, str]
    content: bytes

    @property
    def json(self) -> Any:
        """The body; None if it is empty or not JSON."""
        try:
            return json.loads(self.content)
        except ValueError:
            return None


class RestClient:
    """Sends requests to a worker."""

    def __init__(self, url: str) -> None:
        self.url = url

    def __call__(self, method: str, path: str, body: object = None, **headers: str) -> RestResponse:
        """A body of bytes is sent as it is, any other as JSON."""
        content = body if isinstance(body, bytes) else None
        if body is not None and not isinstance(body, bytes):
            content = json.dumps(body).encode()
        named = {name.replace("_", "-").title(): value for name, value in headers.items()}
        if content is not None:
            named.setdefault("Content-Type", "application/json")
        request = urllib.request.Request(self.url + path, content, named, method=method)
        try:
            with urllib.request.urlopen(request, timeout=100) as response:
                return RestResponse(response.status, response.headers, response.read())
        except urllib.error.HTTPError as error:
            return RestResponse(error.code, error.headers, error.read())

    def is_ready(self) -> bool:
        try:
            return self("GET", "/health").status == 200
        except OSError:
            return False

    def states(self, connector: str) -> tuple[str, list[str]] | None:
        """Returns the states of a connector and its tasks; None if there is no status."""
        response = self("GET", f"/connectors/{connector}/status")
        if response.status != 200:
            return None
        content = response.json
        return content["connector"]["state"], [task["state"] for task in content["tasks"]]


class ConnectWorker(ABC):
    """A worker in a process of its own. Its output is in `directory/worker.log`."""

    def __init__(
        self, directory: Path, bootstrap: str, settings: Mapping[str, str] | None = None
    ) -> None:
        self.directory = directory
        self.port = free_port()
        self.api = RestClient(f"http://127.0.0.1:{self.port}")
        self._bootstrap = bootstrap
        self._settings = dict(settings or {})
        self._process: subprocess.Popen[bytes] | None = None
        directory.mkdir(parents=True, exist_ok=True)

    @abstractmethod
    def _command(self, properties: Path) -> Sequence[str | Path]: ...

    @property
    def worker_id(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def log_file(self) -> Path:
        return self.directory / "worker.log"

    def start(self, *, deadline_s: float = 120) -> None:
        group = self.directory.name
        settings = {
            "bootstrap.servers": self._bootstrap,
            "group.id": group,
            "key.converter": _JSON_CONVERTER,
            "value.converter": _JSON_CONVERTER,
            "offset.flush.interval.ms": "500",
            "scheduled.rebalance.max.delay.ms": "0",
            "listeners": f"http://127.0.0.1:{self.port}",
            "rest.advertised.host.name": "127.0.0.1",
            "rest.advertised.port": str(self.port),
            **{f"{kind}.storage.topic": f"{group}-{kind}" for kind in _STORAGE},
            **{f"{kind}.storage.replication.factor": "1" for kind in _STORAGE},
            **self._settings,
        }
        properties = self.directory / "worker.properties"
        properties.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        with self.log_file.open("ab") as log:
            self._process = subprocess.Popen(
                self._command(properties),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        try:
            wait_until(self._ended_or_ready, "the worker is ready", deadline_s, poll_s=0.1)
        except TimeoutError:
            self.stop()
            raise
        if self._process.poll() is not None:
            tail = "\n".join(self.log_file.read_text(errors="replace").splitlines()[-30:])
            raise RuntimeError(f"the worker ended:\n{tail}")

    def kill(self) -> None:
        process, self._process = self._process, None
        assert process is not None
        process.kill()
        process.wait()

    def stop(self, *, deadline_s: float = 60) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(deadline_s)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _ended_or_ready(self) -> bool:
        assert self._process is not None
        return self._process.poll() is not None or self.api.is_ready()


_STORAGE = ("config", "offset", "status")


class KafkaWorker(ConnectWorker):
    """The real one, with Kafka's connectors of files."""

    def _command(self, properties: Path) -> Sequence[str | Path]:
        with properties.open("a") as file:
            file.write(f"plugin.path={_file_connectors()}\n")
        return [
            PEERS / "kafka",
            "tool",
            "org.apache.kafka.connect.cli.ConnectDistributed",
            properties,
        ]


def _file_connectors() -> Path:
    """Returns the directory of their jar; Maven downloads it the first time."""
    directory = _CACHE / f"connect-file-{KAFKA_VERSION}"
    if not list(directory.glob("*.jar")):
        artifact = f"org.apache.kafka:connect-file:{KAFKA_VERSION}"
        command = ["mvn", "-B", "-ntp", "-q", "dependency:copy", f"-Dartifact={artifact}"]
        subprocess.run([*command, f"-DoutputDirectory={directory}"], check=True)
    return directory


class BarnabasWorker(ConnectWorker):
    """Ours, started as a user starts it."""

    def _command(self, properties: Path) -> Sequence[str | Path]:
        return [sys.executable, "-m", "barnabas.cli", "connect", "start", properties]
