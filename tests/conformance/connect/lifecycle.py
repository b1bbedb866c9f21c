"""The life of a source and a sink by the REST API. Returns what a worker responded with.

Each response is one fact, and has a name that says what was requested.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tests.conformance.connect.comparison import comparable_error
from tests.conformance.connect.workers import ConnectWorker, RestClient
from tests.wait import wait_until

Facts = dict[str, tuple[int, Any]]

_TIMEOUT_S = 60
_SOURCE_CLASS = "FileStreamSource"
_SINK_CLASS = "FileStreamSink"


class Lifecycle:
    """Sends requests about one topic, and keeps the responses."""

    def __init__(self, worker: ConnectWorker, topic: str) -> None:
        self.facts: Facts = {}
        self.topic = topic
        self.file = worker.directory / f"{topic}.in"
        self.output = worker.directory / f"{topic}.out"
        self.source = {
            "connector.class": _SOURCE_CLASS,
            "topic": topic,
            "file": str(self.file),
            "value.converter": "org.apache.kafka.connect.storage.StringConverter",
        }
        self.sink = {
            "connector.class": _SINK_CLASS,
            "topics": topic,
            "file": str(self.output),
            "value.converter": "org.apache.kafka.connect.storage.StringConverter",
        }
        self._api: RestClient = worker.api
        self._own = {
            worker.worker_id: "WORKER",
            str(self.file): "IN",
            str(self.output): "OUT",
            topic: "TOPIC",
        }

    def request(self, method: str, path: str, body: object = None) -> Any:
        """Adds a fact, and returns the body of the response."""
        response = self._api(method, path, body)
        name = f"{len(self.facts)} {method} {path}"
        content = self._comparable(response.json)
        self.facts[name] = comparable_error(response.status, content)
        return response.json

    def _comparable(self, content: Any) -> Any:
        text = json.dumps(content)
        for own, name in self._own.items():
            text = text.replace(json.dumps(own)[1:-1], name)
        return _without(json.loads(text), ("version", "task.class"))

    def wait(self, condition: Callable[[], bool], message: str) -> None:
        wait_until(condition, message, _TIMEOUT_S, poll_s=0.1)

    def wait_for_states(self, name: str, connector: str, *tasks: str) -> None:
        expected = (connector, list(tasks))
        self.wait(lambda: self._api.states(name) == expected, f"{name} is {expected}")

    def wait_for_offsets(self, name: str, condition: Callable[[list[Any]], bool]) -> None:
        def is_met() -> bool:
            content = self._api("GET", f"/connectors/{name}/offsets").json
            return condition(content.get("offsets", []))

        self.wait(is_met, f"offsets of {name}")

    def wait_for_output(self, text: str) -> None:
        self.wait(lambda: _read(self.output) == text, f"{self.output} has {text!r}")


def run_source(worker: ConnectWorker, topic: str) -> Facts:
    life = Lifecycle(worker, topic)
    life.file.write_text("one\ntwo\n")
    source = life.source
    life.request("POST", "/connectors", {"name": topic, "config": source})
    path = f"/connectors/{topic}"
    life.wait_for_states(topic, "RUNNING", "RUNNING")
    life.request("POST", "/connectors", {"name": topic, "config": source})
    for part in ("", "/config", "/status", "/tasks", "/tasks/0/status", "/tasks/1/status"):
        life.request("GET", path + part)
    life.wait_for_offsets(topic, lambda offsets: bool(offsets))
    life.request("GET", f"{path}/offsets")
    life.request("GET", f"{path}/topics")
    life.request("PUT", f"{path}/pause")
    life.wait_for_states(topic, "PAUSED", "PAUSED")
    life.request("GET", f"{path}/status")
    life.request("PUT", f"{path}/resume")
    life.wait_for_states(topic, "RUNNING", "RUNNING")
    _restart(life, path)
    _reconfigure(life, path)
    life.request("PATCH", f"{path}/offsets", {"offsets": [_position(life, 4)]})
    life.request("DELETE", f"{path}/offsets")
    life.request("PUT", f"{path}/stop")
    life.wait_for_states(topic, "STOPPED")
    for part in ("", "/status", "/tasks"):
        life.request("GET", path + part)
    _alter(life, path)
    life.request("DELETE", path)
    life.wait(lambda: worker.api("GET", f"{path}/status").status == 404, "it is deleted")
    life.request("GET", f"{path}/status")
    life.request("GET", path)
    return life.facts


def _restart(life: Lifecycle, path: str) -> None:
    for query in ("", "?includeTasks=no", "?onlyFailed=true", "?includeTasks=TRUE&onlyFailed=true"):
        life.request("POST", f"{path}/restart{query}")
        life.wait_for_states(life.topic, "RUNNING", "RUNNING")
    life.request("POST", f"{path}/tasks/0/restart")
    life.wait_for_states(life.topic, "RUNNING", "RUNNING")
    life.request("POST", f"{path}/tasks/7/restart")
    life.request("POST", f"{path}/tasks/x/restart")


def _reconfigure(life: Lifecycle, path: str) -> None:
    life.request("PUT", f"{path}/config", {**life.source, "batch.size": 10, "other": True})
    life.request("PATCH", f"{path}/config", {"other": None, "tasks.max": 1})
    life.request("PATCH", f"{path}/config", {"tasks.max": "0"})
    life.request("PATCH", f"{path}/config", {})
    life.request("PUT", f"{path}/config", {**life.source, "name": "other"})
    life.request("PUT", f"{path}/config", {**life.source, "other": None})
    life.request("PUT", f"{path}/config", {**life.source, "batch.size": "x", "topic": ""})
    life.request("PUT", f"{path}/config", {})
    life.request("PUT", f"{path}/config", [1])
    life.wait_for_states(life.topic, "RUNNING", "RUNNING")


def _alter(life: Lifecycle, path: str) -> None:
    offsets = f"{path}/offsets"
    life.request("PATCH", offsets, {"offsets": [_position(life, 4)]})
    life.request("GET", offsets)
    for body in (
        {},
        {"offsets": []},
        {"offsets": "x"},
        {"offsets": [{"partition": {"other": 1}, "offset": {"position": 1}}]},
        {"offsets": [{"partition": {"filename": "x"}, "offset": {"position": "x"}}]},
        {"offsets": [{"partition": {"filename": "x"}, "offset": {"position": -1}}]},
    ):
        life.request("PATCH", offsets, body)
    life.request("PATCH", offsets, {"offsets": [_position(life, None)]})
    life.request("GET", offsets)
    life.request("PATCH", offsets, {"offsets": [_position(life, 4)]})
    life.request("DELETE", offsets)
    life.request("GET", offsets)


def _position(life: Lifecycle, position: int | None) -> Mapping[str, Any]:
    offset = None if position is None else {"position": position}
    return {"partition": {"filename": str(life.file)}, "offset": offset}


def run_sink(worker: ConnectWorker, topic: str) -> Facts:
    """Reads a topic of two lines, which a source has written."""
    life = Lifecycle(worker, topic)
    sink = f"{topic}-sink"
    path = f"/connectors/{sink}"
    life.file.write_text("one\ntwo\n")
    life.request("POST", "/connectors", {"name": topic, "config": life.source})
    life.wait_for_offsets(topic, lambda offsets: bool(offsets))
    request = {"name": sink, "config": life.sink, "initial_state": "stopped"}
    life.request("POST", "/connectors", request)
    life.wait_for_states(sink, "STOPPED")
    life.request("GET", f"{path}/status")
    life.request("GET", f"{path}/offsets")
    life.request("PUT", f"{path}/resume")
    life.wait_for_output("one\ntwo\n")
    life.wait_for_states(sink, "RUNNING", "RUNNING")
    life.request("GET", f"{path}/status")
    life.wait_for_offsets(sink, lambda offsets: bool(offsets))
    life.request("GET", f"{path}/offsets")
    life.request("GET", f"{path}/topics")
    life.request("PUT", f"{path}/stop")
    life.wait_for_states(sink, "STOPPED")
    for partition, offset in (
        ({"kafka_topic": topic, "kafka_partition": 0}, {"kafka_offset": 1}),
        ({"kafka_topic": topic, "kafka_partition": "0"}, {"kafka_offset": "1"}),
        ({"kafka_topic": topic}, {"kafka_offset": 1}),
        ({"kafka_topic": topic, "kafka_partition": "x"}, {"kafka_offset": 1}),
        ({"kafka_topic": topic, "kafka_partition": 0}, {"other": 1}),
        ({"kafka_topic": topic, "kafka_partition": 0}, {"kafka_offset": "x"}),
    ):
        life.request(
            "PATCH", f"{path}/offsets", {"offsets": [{"partition": partition, "offset": offset}]}
        )
    life.request("GET", f"{path}/offsets")
    life.request("PUT", f"{path}/resume")
    life.wait_for_output("one\ntwo\ntwo\n")
    life.request("PUT", f"{path}/stop")
    life.wait_for_states(sink, "STOPPED")
    life.request("DELETE", f"{path}/offsets")
    life.request("GET", f"{path}/offsets")
    life.request("DELETE", path)
    life.request("DELETE", f"/connectors/{topic}")
    return life.facts


def run_unknown(worker: ConnectWorker, topic: str) -> Facts:
    """Requests about a connector that does not exist, and requests that are wrong."""
    life = Lifecycle(worker, topic)
    path = f"/connectors/{topic}"
    for part in ("", "/config", "/status", "/tasks", "/tasks/0/status", "/topics", "/offsets"):
        life.request("GET", path + part)
    for part in ("/pause", "/resume", "/stop", "/topics/reset"):
        life.request("PUT", path + part)
    for part in ("/restart", "/restart?includeTasks=true", "/tasks/0/restart"):
        life.request("POST", path + part)
    life.request("DELETE", path)
    life.request("DELETE", f"{path}/offsets")
    life.request("PATCH", f"{path}/offsets", {"offsets": [_position(life, 1)]})
    life.request("PATCH", f"{path}/config", {"a": "b"})
    for config in ({}, {"connector.class": _SINK_CLASS}, {**life.sink, "tasks.max": "x"}):
        life.request("PUT", f"{path}/config", config)
        life.request("POST", "/connectors", {"name": topic, "config": config})
    life.request("POST", "/connectors", {"name": topic, "config": {**life.sink, "name": "b"}})
    life.request("POST", "/connectors", {"config": life.sink})
    life.request("GET", "/connectors?expand=other")
    for method, wrong in [
        ("GET", "/none"),
        ("GET", f"{path}/none"),
        ("GET", f"{path}/tasks-config"),
        ("POST", path),
        ("PUT", "/connectors"),
        ("DELETE", f"{path}/config"),
        ("POST", "/connector-plugins"),
        ("POST", f"{path}/tasks"),
        ("PUT", f"{path}/fence"),
        ("GET", f"{path}/tasks/x/status"),
    ]:
        life.request(method, wrong, [] if method == "POST" else None)
    return life.facts


def _without(content: Any, names: tuple[str, ...]) -> Any:
    if isinstance(content, dict):
        return {
            name: _without(value, names) for name, value in content.items() if name not in names
        }
    if isinstance(content, list):
        return [_without(item, names) for item in content]
    return content


def _read(path: Path) -> str | None:
    return path.read_text() if path.exists() else None
