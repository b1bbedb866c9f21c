"""kafka-storage, kafka-server-start and kafka-server-stop: the life of a node."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.kafka.conftest import Command
from tests.conformance.brokers import free_port
from tests.wait import wait_until

from barnabas.cli.kafka.server_stop import NodeProcess, find_node_processes
from barnabas.node.format import single_node_properties

KAFKA = (sys.executable, "-m", "barnabas.cli.kafka")


@pytest.fixture
def properties(tmp_path: Path) -> Path:
    settings = single_node_properties("127.0.0.1", free_port(), tmp_path / "data")
    file = tmp_path / "server.properties"
    file.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    return file


def node_of(file: Path) -> NodeProcess | None:
    return next(
        (process for process in find_node_processes() if str(file) in process.arguments),
        None,
    )


def test_a_daemon_is_started_and_stopped(
    run: Command, properties: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster_id = run("kafka-storage", "random-uuid").out.strip()
    formatted = run("kafka-storage", "format", "-t", cluster_id, "-c", properties, "--standalone")
    assert formatted.out.startswith("Formatting dynamic metadata voter directory ")
    assert run("kafka-storage", "info", "-c", properties).status == 0
    monkeypatch.setenv("LOG_DIR", str(tmp_path / "logs"))
    overrides = ("--override", "node.id=1", "--override", "num.partitions=7")
    assert run("kafka-server-start", "-daemon", properties, *overrides).status == 0
    wait_until(lambda: node_of(properties), "the node runs")
    node = node_of(properties)
    assert node is not None
    try:
        assert node.settings()["num.partitions"] == "7"
        listener = node.settings()["listeners"].split(",")[0].removeprefix("PLAINTEXT://")
        log = tmp_path / "logs" / "kafkaServer.out"
        wait_until(lambda: "is unfenced" in log.read_text(), "the broker serves")
        created = run("kafka-topics", "--bootstrap-server", listener, "--create", "--topic", "t")
        assert created.status == 0
        assert len(run("kafka-topics", "--bootstrap-server", listener, "--describe").lines) == 8
        assert run("kafka-server-stop", "--node-id", "4242").status == 0
        assert node_of(properties) is not None
    finally:
        os.kill(node.pid, signal.SIGTERM)
        wait_until(lambda: node_of(properties) is None, "the node has stopped")
    assert (tmp_path / "data" / ".kafka_cleanshutdown").exists()


def test_a_node_is_stopped_by_its_node_id(properties: Path, tmp_path: Path) -> None:
    text = properties.read_text().replace("node.id=1", "node.id=86420")
    properties.write_text(text)
    subprocess.run(
        [*KAFKA, "kafka-storage", "format", "-t", "abc", "-c", properties, "-s"], check=True,
        capture_output=True,
    )  # fmt: skip
    with (tmp_path / "log").open("wb") as log:
        node = subprocess.Popen([*KAFKA, "kafka-server-start", properties], stderr=log)
    try:
        wait_until(lambda: "is unfenced" in (tmp_path / "log").read_text(), "the broker serves")
        stopped = subprocess.run([*KAFKA, "kafka-server-stop", "--node-id=86420"], check=False)
        assert stopped.returncode == 0
        assert node.wait(60) == 0
    finally:
        node.kill()


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((), "USAGE: kafka-server-start [-daemon] server.properties"),
        (("/no/such.properties",), "cannot read /no/such.properties"),
    ],
)
def test_a_node_without_its_file_does_not_start(
    run: Command, arguments: tuple[str, ...], expected: str
) -> None:
    result = run("kafka-server-start", *arguments)
    assert result.status == 1
    assert expected in result.err


def test_an_override_must_be_key_and_value(run: Command, properties: Path) -> None:
    result = run("kafka-server-start", properties, "--override", "num.partitions")
    assert (result.status, result.err) == (1, "'num.partitions' is not KEY=VALUE\n")
