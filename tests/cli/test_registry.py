"""`barnabas registry`, and the one beside the brokers of `barnabas up`."""

import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.conftest import Barnabas
from tests.conformance.brokers import wait_until
from tests.registry.asking import ask, record
from tests.registry.processes import RegistryProcess

from barnabas.testing import Broker

START_S = 60


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_serves_until_it_is_told_to_stop(
    kafka_broker: Broker, tmp_path: Path, number: signal.Signals
) -> None:
    registry = RegistryProcess(kafka_broker.bootstrap_servers, tmp_path / "log").wait()
    assert ask(registry.url, "GET", "/subjects").status == 200
    assert registry.end(number) == 0
    assert "Traceback" not in registry.said


def test_a_port_that_is_taken_is_named(barnabas: Barnabas, kafka_broker: Broker) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = str(other.getsockname()[1])
        where = ("-b", kafka_broker.bootstrap_servers, "--host", "127.0.0.1", "--port", port)
        result = barnabas("registry", *where)
    assert result.exit_code == 1
    assert f"Cannot listen on 127.0.0.1:{port}: Address already in use" in result.output


def test_up_has_a_registry_that_ends_with_it(tmp_path: Path) -> None:
    log = tmp_path / "log"
    command = [sys.executable, "-m", "barnabas.cli", "up", "--port", "0", "--host", "127.0.0.1"]
    with log.open("wb") as file:
        up = subprocess.Popen(
            [*command, "--dir", str(tmp_path / "data")],
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
        )
    try:
        wait_until(lambda: "Schema registry: " in log.read_text(), "the banner is shown", START_S)
        url = re.findall(r"Schema registry: (\S+)", log.read_text())[0]
        wait_until(lambda: _answers(url), "the registry answers", START_S)
        told = ask(url, "POST", "/subjects/orders-value/versions", record("x")).json
        assert told["id"] == 1
    finally:
        up.send_signal(signal.SIGINT)
        assert up.wait(START_S) == 0
    assert not _answers(url)
    assert "Traceback" not in log.read_text()


def test_up_goes_on_without_a_registry_if_its_port_is_taken() -> None:
    from barnabas.cli.registry_process import Beside

    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        beside = Beside.on("127.0.0.1", port)
    assert beside.port is None
    assert f"port {port} cannot be had" in beside.remark


def _answers(url: str) -> bool:
    try:
        return ask(url, "GET", "/").status == 200
    except OSError:
        return False
