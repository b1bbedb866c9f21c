"""`barnabas up` and `barnabas start`: errors in one line, serving, and a clean stop."""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.request import urlopen

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from tests.cli.conftest import Barnabas
from tests.conformance.brokers import BrokerProcess

from barnabas.cli.up_options import DEFAULT_METRICS_PORT


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
            "Listener PLAINTEXT needs a key and a certificate",
        ),
        (
            ("--set", "create.topic.policy.class.name=org.acme.Strict"),
            "create.topic.policy.class.name is org.acme.Strict; this version has no policies",
        ),
        (("--host", "no.such.host.invalid"), "Cannot listen on no.such.host.invalid: "),
    ],
)
def test_up_rejects_invalid_options(
    barnabas: Barnabas, tmp_path: Path, arguments: tuple[str, ...], expected: str
) -> None:
    result = barnabas("up", "--dir", tmp_path / "data", *arguments)
    assert result.exit_code != 0
    assert expected in result.output


def test_a_port_in_use_is_named_in_the_error(barnabas: Barnabas, tmp_path: Path) -> None:
    with listening_process() as (pid, port):
        for option in "--port", "--metrics-port", "--registry-port":
            arguments = {"--host": "127.0.0.1", "--port": "0", "--dir": str(tmp_path / "d")}
            arguments[option] = str(port)
            words = [word for pair in arguments.items() for word in pair]
            result = barnabas("up", *words)
            assert result.exit_code == 1
            assert f"Error: Port {port} is in use by process {pid} (python" in result.output
            assert f" {option} " in result.output


def test_start_names_the_setting_of_a_port_in_use(barnabas: Barnabas, properties: Path) -> None:
    barnabas("storage", "format", "-c", properties, "-t", "castle", "-s")
    with listening_process() as (pid, port):
        listeners = f"listeners=PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:{port}"
        result = barnabas("start", properties, "--set", listeners)
    assert result.exit_code == 1
    assert f"Port {port} is in use by process {pid} (python" in result.output
    assert f"Stop it, or change listeners in {properties}." in result.output


@contextmanager
def listening_process() -> Iterator[tuple[int, int]]:
    """Another process that listens on a port of 127.0.0.1; its pid and the port."""
    program = (
        "import socket, sys; listener = socket.create_server(('127.0.0.1', 0)); "
        "print(listener.getsockname()[1], flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        yield process.pid, int(process.stdout.readline())
        process.stdin.close()


def test_ports_that_nobody_chose_are_the_next_free_ones(tmp_path: Path) -> None:
    broker = BrokerProcess(tmp_path)
    with (
        socket.create_server(("127.0.0.1", broker.port + 1)),
        _bound_unless_taken(DEFAULT_METRICS_PORT),
    ):
        broker.start()
        (address,) = re.findall(r"^Metrics: (http://\S+)$", broker.log_text(), re.MULTILINE)
        assert f":{DEFAULT_METRICS_PORT}/" not in address
        assert b"kafka_server" in urlopen(address).read()
        broker.stop()


@contextmanager
def _bound_unless_taken(port: int) -> Iterator[None]:
    """Another test may have a broker with its metrics there."""
    with suppress(OSError), socket.create_server(("127.0.0.1", port)):
        yield
        return
    yield


def test_up_on_all_interfaces_is_reached_by_each_address(tmp_path: Path) -> None:
    broker = BrokerProcess(tmp_path, host="0.0.0.0")
    broker.start()
    try:
        for host in "127.0.0.1", "127.0.0.2", "localhost":
            admin = AdminClient({"bootstrap.servers": f"{host}:{broker.port}"})
            (address,) = admin.list_topics(timeout=20).brokers.values()
            expected = "127.0.0.1" if host == "localhost" else host
            assert (address.host, address.port) in [(expected, broker.port), ("::1", broker.port)]
        assert f"serves Kafka clients on localhost:{broker.port} and all other" in broker.log_text()
    finally:
        broker.stop()


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
    assert "format the directory first" in result.output


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
    properties.write_bytes("# caf\xe9\n\nnum.partitions\\\n =x\nlog.dirs=a\n".encode("latin-1"))
    result = barnabas("start", properties)
    assert result.exit_code == 1
    assert "node.id is required" in result.output
    assert "process.roles is required" in result.output
    assert f"{properties} cannot be used:" in result.output
    assert "  line 3: Invalid value x for configuration num.partitions: Not a" in result.output
    properties.write_text("node.id=one\n")
    result = barnabas("start", properties)
    assert "  line 1: Invalid value one for configuration node.id" in result.output
    assert "broker.id" not in result.output, "it is not in the file"


def test_up_stops_cleanly_when_its_terminal_is_closed(tmp_path: Path) -> None:
    """The shell and the kernel each send SIGHUP: the second one must not kill the broker."""
    broker = BrokerProcess(tmp_path)
    with inherited_sighup(signal.SIG_DFL):
        broker.start()
    assert broker.pid is not None
    os.kill(broker.pid, signal.SIGHUP)
    assert broker.end_with_signal(signal.SIGHUP) == 0
    assert (broker.data / ".kafka_cleanshutdown").exists()


def test_up_runs_on_without_a_terminal_under_nohup(tmp_path: Path) -> None:
    broker = BrokerProcess(tmp_path)
    with inherited_sighup(signal.SIG_IGN):
        broker.start()
    try:
        assert broker.pid is not None
        os.kill(broker.pid, signal.SIGHUP)
        producer = Producer({"bootstrap.servers": broker.bootstrap})
        producer.produce("hello", "world")
        assert producer.flush(20) == 0
    finally:
        broker.stop()


@contextmanager
def inherited_sighup(action: signal.Handlers) -> Iterator[None]:
    """Child processes get this action, whether or not the tests themselves run under nohup."""
    before = signal.signal(signal.SIGHUP, action)
    try:
        yield
    finally:
        signal.signal(signal.SIGHUP, before)


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
        assert f"{broker.data} is in use by process {broker.pid} (barnabas up" in second.output
        assert "choose another --dir" in second.output
    finally:
        status = broker.end_with_signal(number)
    assert status == 0
    assert (broker.data / ".kafka_cleanshutdown").exists()
    output = broker.log_text()
    assert "INFO" not in output, "only warnings are for the terminal"
    assert "INFO" in (broker.data / "server.log").read_text()
    assert f"Log: {broker.data}/server.log" in output
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
