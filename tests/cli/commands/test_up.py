"""`barnabas up` and `barnabas start`: errors in one line, serving, and a clean stop."""

import shutil
import signal
import socket
from pathlib import Path

import pytest
from confluent_kafka import Producer
from tests.cli.conftest import Barnabas
from tests.conformance.brokers import BrokerProcess


def test_help_lists_the_commands(barnabas: Barnabas) -> None:
    output = barnabas("--help").output
    assert all(f"\n  {command} " in output for command in ("up", "start", "storage"))


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--port", "65535"), "65535 is not in the range"),
        (("--set", "num.partitions"), "'num.partitions' is not KEY=VALUE"),
        (("--set", "num.partitions=many"), "Invalid value many for configuration num.partitions"),
        (
            ("--set", "listener.security.protocol.map=PLAINTEXT:SSL,CONTROLLER:PLAINTEXT"),
            "this version supports PLAINTEXT only",
        ),
        (
            ("--set", "create.topic.policy.class.name=org.acme.Strict"),
            "create.topic.policy.class.name is org.acme.Strict; this version has no authorization",
        ),
        (("--host", "0.0.0.0"), "set advertised.listeners to an address"),
        (("--host", "no.such.host.invalid"), "cannot resolve no.such.host.invalid"),
    ],
)
def test_up_rejects_invalid_options(
    barnabas: Barnabas, tmp_path: Path, arguments: tuple[str, ...], expected: str
) -> None:
    result = barnabas("up", "--dir", tmp_path / "data", *arguments)
    assert result.exit_code != 0
    assert expected in result.output


def test_a_port_in_use_is_named_in_the_error(barnabas: Barnabas, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        result = barnabas("up", "--host", "127.0.0.1", "--port", str(port), "--dir", tmp_path / "d")
    assert result.exit_code == 1
    assert f"127.0.0.1:{port}: Address already in use; stop what listens there" in result.output


def test_up_does_not_format_a_directory_with_other_files(
    barnabas: Barnabas, tmp_path: Path
) -> None:
    (tmp_path / "thesis.tex").write_text("")
    result = barnabas("up", "--dir", tmp_path)
    assert result.exit_code == 1
    assert "has files in it, but no meta.properties" in result.output
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_start_requires_formatted_directories(barnabas: Barnabas, properties: Path) -> None:
    result = barnabas("start", properties)
    assert result.exit_code == 1
    assert "run `barnabas storage format` first" in result.output


def test_start_rejects_the_directory_of_another_node(barnabas: Barnabas, properties: Path) -> None:
    barnabas("storage", "format", "-c", properties, "-t", "castle", "-s")
    result = barnabas("start", properties, "--set", "node.id=2")
    assert result.exit_code == 1
    assert "belongs to node 1, but node.id is 2: correct node.id or log.dirs." in result.output


def test_start_rejects_a_voter_without_the_controller_role(
    barnabas: Barnabas, properties: Path
) -> None:
    barnabas("storage", "format", "-c", properties, "-t", "castle", "-s")
    only_broker = ("process.roles=broker", "listeners=PLAINTEXT://127.0.0.1:0")
    servers = "controller.quorum.bootstrap.servers=127.0.0.1:1"
    flags = [flag for setting in (*only_broker, servers) for flag in ("--set", setting)]
    result = barnabas("start", properties, *flags)
    assert result.exit_code == 1
    assert "Node 1 is a voter of the metadata quorum" in result.output
    assert "set process.roles, or remove it from the voters first." in result.output


def test_start_rejects_voters_without_this_node(barnabas: Barnabas, properties: Path) -> None:
    voters = "controller.quorum.voters=2@127.0.0.1:9093,3@127.0.0.1:9094"
    result = barnabas("start", properties, "--set", voters)
    assert result.exit_code == 1
    assert "controller.quorum.voters must include node.id 1" in result.output


def test_start_lists_all_problems_of_a_file(barnabas: Barnabas, properties: Path) -> None:
    properties.write_bytes("# caf\xe9\nnum.partitions=x\n".encode("latin-1"))
    result = barnabas("start", properties)
    assert result.exit_code == 1
    assert "node.id is required" in result.output
    assert "process.roles is required" in result.output
    assert "Not a number" in result.output


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_up_serves_until_a_signal_stops_it(
    barnabas: Barnabas, tmp_path: Path, number: signal.Signals
) -> None:
    broker = BrokerProcess(tmp_path, settings={"num.partitons": "3"})
    broker.start()
    try:
        producer = Producer({"bootstrap.servers": broker.bootstrap})
        producer.produce("hello", "world")
        assert producer.flush(20) == 0
        second = barnabas("up", "--port", "0", "--dir", broker.data)
        assert second.exit_code == 1
        assert "another broker uses" in second.output
    finally:
        status = broker.end_with_signal(number)
    assert status == 0
    assert (broker.data / ".kafka_cleanshutdown").exists()
    output = broker.log_text()
    assert f"serves Kafka clients on {broker.bootstrap}" in output
    assert (
        "num.partitons is not a known setting and has no effect; did you mean num.partitions?"
        in output
    )
    assert "Traceback" not in output


def test_up_formats_an_added_log_directory(tmp_path: Path) -> None:
    broker = BrokerProcess(tmp_path)
    broker.start()
    broker.stop()
    broker.settings["log.dirs"] = f"{broker.data},{tmp_path}/more"
    broker.start()
    broker.stop()
    first, second = (
        dict(line.split("=") for line in file.read_text().split())
        for file in (broker.data / "meta.properties", tmp_path / "more" / "meta.properties")
    )
    assert first["cluster.id"] == second["cluster.id"]
    assert first["directory.id"] != second["directory.id"]


def test_up_creates_no_new_metadata_beside_existing_data(
    barnabas: Barnabas, properties: Path
) -> None:
    barnabas("storage", "format", "-c", properties, "-t", "castle", "-s")
    shutil.rmtree(properties.parent / "one")
    log_dirs = f"log.dirs={properties.parent}/one,{properties.parent}/two"
    result = barnabas("up", "--port", "0", "--set", log_dirs)
    assert result.exit_code == 1
    assert "has no metadata log" in result.output
