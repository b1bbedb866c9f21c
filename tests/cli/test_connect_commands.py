"""`barnabas connect`, with a worker whose engine only notes what it runs."""

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from click.testing import CliRunner, Result
from tests.connect.herder.instances import FakeEngine, Runs
from tests.wait import async_wait_until, wait_until

from barnabas.cli.root_command import ExitStatus, barnabas
from barnabas.connect.worker import serve_worker
from barnabas.connect.worker_config import WorkerConfig
from barnabas.testing import Broker

Call = Callable[..., Result]


@pytest.fixture(scope="module")
def worker_url(kafka_broker: Broker) -> Iterator[str]:
    group_id = f"cli{uuid4().hex}"
    config = WorkerConfig.parse(
        {
            "bootstrap.servers": kafka_broker.bootstrap_servers,
            "group.id": group_id,
            "config.storage.topic": f"{group_id}-configs",
            "offset.storage.topic": f"{group_id}-offsets",
            "offset.storage.partitions": "1",
            "status.storage.topic": f"{group_id}-status",
            "status.storage.partitions": "1",
            "listeners": "http://127.0.0.1:0",
        }
    )
    urls: list[str] = []
    loop = asyncio.new_event_loop()
    stop = asyncio.Event()

    async def serve() -> None:
        async with serve_worker(config, partial(FakeEngine, "", Runs())) as worker:
            await async_wait_until(lambda: worker.herder.health[0] == "healthy")
            urls.append(worker.url)
            await stop.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),))
    thread.start()
    wait_until(lambda: urls, "the worker is there")
    yield urls[0]
    loop.call_soon_threadsafe(stop.set)
    thread.join()


@pytest.fixture
def call(worker_url: str, monkeypatch: pytest.MonkeyPatch) -> Call:
    monkeypatch.setenv("BARNABAS_CONNECT", worker_url)

    def run(*arguments: Any) -> Result:
        return CliRunner().invoke(barnabas, ["connect", *map(str, arguments)])

    return run


@pytest.fixture
def name(call: Call) -> Iterator[str]:
    """A connector that runs, and is deleted after the test."""
    name = f"lines-{uuid4().hex[:6]}"
    created = call(
        "create", name, "connector.class=FileStreamSource", "file=/tmp/in", "topic=lines"
    )
    assert (created.output, created.exit_code) == (f"{name} (source): created.\n", 0)
    wait_until(lambda: state_of(call, name) == "RUNNING", "it runs")
    yield name
    call("delete", name, "--yes")


def state_of(call: Call, name: str) -> str | None:
    rows = json.loads(call("list", name, "--json").output)
    return rows[0]["state"] if rows else None


def test_connectors_are_listed_and_shown(call: Call, name: str) -> None:
    wait_until(lambda: "2      0" in call("list", name).output, "its tasks run")
    head, row = call("list", name).output.splitlines()
    assert head.split() == ["NAME", "TYPE", "STATE", "TASKS", "FAILED", "WORKER"]
    assert row.split()[:5] == [name, "source", "RUNNING", "2", "0"]
    shown = call("show", name).output
    assert shown.startswith(f"{name} (source): RUNNING on 127.0.0.1:")
    assert "  task 1: RUNNING on" in shown
    assert "  file=/tmp/in\n" in shown
    as_json = json.loads(call("show", name, "--json").output)
    assert as_json["status"]["connector"]["state"] == "RUNNING"


def test_states_are_changed(call: Call, name: str) -> None:
    assert call("pause", name).output == f"{name} is being paused.\n"
    wait_until(lambda: state_of(call, name) == "PAUSED", "it is paused")
    call("stop", name)
    wait_until(lambda: state_of(call, name) == "STOPPED", "it is stopped")
    call("resume", name)
    wait_until(lambda: state_of(call, name) == "RUNNING", "it runs")
    restarted = call("restart", name, "--tasks", "--only-failed")
    assert restarted.output == f"{name} is being restarted.\n"


def test_offsets_are_shown_set_and_reset(call: Call, name: str, tmp_path: Path) -> None:
    file = tmp_path / "offsets.json"
    offsets = [{"partition": {"filename": "/tmp/in"}, "offset": {"position": 7}}]
    file.write_text(json.dumps({"offsets": offsets}))
    refused = call("offsets", name, "--set", file, "--yes")
    assert refused.exit_code == ExitStatus.FAILED
    assert "must be in the STOPPED state" in refused.stderr
    call("stop", name)
    changed = call("offsets", name, "--set", file, "--yes")
    assert changed.output.endswith("altered successfully\n")
    assert call("offsets", name).output.splitlines() == [
        "PARTITION         OFFSET",
        "filename=/tmp/in  position=7",
    ]
    assert json.loads(call("offsets", name, "--json").output) == {"offsets": offsets}
    assert "reset successfully" in call("offsets", name, "--reset", "--yes").output
    assert call("offsets", name, "--set", file, "--reset").exit_code == ExitStatus.FAILED


def test_a_connector_is_created_from_a_file_and_replaced(call: Call, tmp_path: Path) -> None:
    name = f"file-{uuid4().hex[:6]}"
    properties, document = tmp_path / "c.properties", tmp_path / "c.json"
    properties.write_text(f"name={name}\nconnector.class=FileStreamSource\nfile=f\ntopic=t\n")
    config = {"connector.class": "FileStreamSource", "file": "g", "topic": "t", "batch.size": 1}
    document.write_text(json.dumps({"name": name, "config": config}))
    assert call("create", properties, "--paused").output == f"{name} (source): created.\n"
    wait_until(lambda: state_of(call, name) == "PAUSED", "it is paused")
    again = call("create", properties)
    assert again.stderr == f"Error: Connector {name} already exists\n"
    replaced = call("create", document, "--replace", "file=h")
    assert replaced.output == f"{name} (source): settings replaced.\n"
    shown = call("show", name).output
    assert "file=h" in shown
    assert "batch.size=1" in shown
    assert call("delete", name, "--yes").output == f"{name} deleted.\n"


def test_settings_are_checked_without_a_connector(call: Call) -> None:
    good = call("validate", "x", "connector.class=FileStreamSource", "topic=t")
    assert (good.output, good.exit_code) == ("x: the settings are valid.\n", 0)
    bad = call("validate", "x", "connector.class=FileStreamSource", "tasks.max=0")
    assert bad.exit_code == ExitStatus.FAILED
    assert "tasks.max: Invalid value 0" in bad.stdout
    assert "topic: Missing required configuration" in bad.stdout
    assert bad.stderr == "Error: x has 2 errors in its settings\n"


def test_errors_say_what_to_do(call: Call, tmp_path: Path) -> None:
    assert call("show", "nothing").stderr == "Error: Connector nothing not found\n"
    missing = call("create", "nothing")
    assert "add its settings as KEY=VALUE" in missing.stderr
    unreachable = call("list", "--connect", "http://127.0.0.1:1")
    assert unreachable.exit_code == ExitStatus.UNREACHABLE
    assert "Is a Connect worker running there?" in unreachable.stderr
    broken = tmp_path / "broken.json"
    for content in ("{", '{"config": []}', '{"name": "x", "config": {"a": []}}', "{}"):
        broken.write_text(content)
        failed = call("create", broken)
        assert failed.exit_code == ExitStatus.FAILED
        assert str(broken) in failed.stderr


def test_plugins_are_listed(call: Call) -> None:
    connectors = call("plugins").output
    assert "org.apache.kafka.connect.file.FileStreamSourceConnector  source" in connectors
    assert "transforms" not in connectors
    assert "JsonConverter" in call("plugins", "--all").output


def test_all_problems_of_a_workers_file_are_listed(tmp_path: Path) -> None:
    file = tmp_path / "worker.properties"
    file.write_text("session.timeout.ms=x\nbarnabas.strt.timeout.ms=1\n")
    result = CliRunner().invoke(barnabas, ["connect", "start", str(file)])
    assert result.exit_code == ExitStatus.FAILED
    assert f"Error: {file} cannot be used:\n  Invalid value x for" in result.stderr
    assert "did you mean barnabas.start.timeout.ms?" in result.stderr
    two = CliRunner().invoke(barnabas, ["connect", "start", str(file), str(file)])
    assert "has no connector.class" in two.stderr
