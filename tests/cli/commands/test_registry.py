"""`barnabas registry`, and the one beside the brokers of `barnabas up`."""

import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.conftest import Barnabas
from tests.registry.http_requests import ask, half_a_request, record
from tests.registry.processes import RegistryProcess
from tests.wait import wait_until

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


def test_a_client_that_dawdles_is_told_when_it_stops(kafka_broker: Broker, tmp_path: Path) -> None:
    registry = RegistryProcess(kafka_broker.bootstrap_servers, tmp_path / "log").wait()
    with half_a_request(registry.url, 1_000) as connection:
        wait_until(registry.answers, "the request before it is taken up", START_S)
        assert registry.end(signal.SIGTERM) == 0
        assert connection.recv(100).startswith(b"HTTP/1.1 503")
    assert "Traceback" not in registry.said


def test_what_is_not_installed_is_told_in_a_line(
    barnabas: Barnabas, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    result = barnabas("registry")
    assert result.exit_code == 1
    assert result.output == (
        "Error: a schema registry needs uvicorn: pip install 'barnabas[registry]'\n"
    )


def test_a_port_that_is_taken_is_named(barnabas: Barnabas, kafka_broker: Broker) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = str(other.getsockname()[1])
        where = ("-b", kafka_broker.bootstrap_servers, "--host", "127.0.0.1", "--port", port)
        result = barnabas("registry", *where)
    assert result.exit_code == 1
    assert f"Cannot listen on 127.0.0.1:{port}: Address already in use" in result.output


def test_up_has_a_registry_that_ends_with_it(tmp_path: Path) -> None:
    up = Up(tmp_path)
    told = ask(up.url, "POST", "/subjects/orders-value/versions", record("x")).json
    assert told["id"] == 1
    assert up.end(signal.SIGINT) == 0
    assert not _answers(up.url)
    assert "Traceback" not in up.said


def test_a_registry_that_is_killed_is_started_again_by_up(tmp_path: Path) -> None:
    up = Up(tmp_path)
    ask(up.url, "POST", "/subjects/orders-value/versions", record("x"))
    os.kill(up.registry_pid, signal.SIGKILL)
    wait_until(lambda: "killed by SIGKILL" in up.said, "its death is told", START_S)
    wait_until(lambda: _answers(up.url), "the registry answers again", START_S)
    assert ask(up.url, "GET", "/subjects").json == ["orders-value"]
    assert up.end(signal.SIGINT) == 0


def test_a_registry_does_not_outlive_an_up_that_is_killed(tmp_path: Path) -> None:
    up = Up(tmp_path)
    up.end(signal.SIGKILL)
    wait_until(lambda: not _answers(up.url), "the registry has ended", START_S)


def test_up_goes_on_without_a_registry_if_its_port_is_taken() -> None:
    from barnabas.cli.registry_process import RegistryPlan

    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        registry_plan = RegistryPlan.for_port("127.0.0.1", port)
    assert registry_plan.port is None
    assert f"port {port} is unavailable" in registry_plan.banner_line


class Up:
    """`barnabas up` on ports that are free, with a registry that answers."""

    def __init__(self, directory: Path) -> None:
        self._log = directory / "log"
        where = ("--port", "0", "--host", "127.0.0.1", "--dir", str(directory / "data"))
        with self._log.open("wb") as file:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "barnabas.cli", "up", *where],
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
            )
        wait_until(lambda: "Schema registry: " in self.said, "the banner is shown", START_S)
        self.url = re.findall(r"Schema registry: (\S+)", self.said)[0]
        wait_until(lambda: _answers(self.url), "the registry answers", START_S)

    @property
    def said(self) -> str:
        return self._log.read_text()

    @property
    def registry_pid(self) -> int:
        pid = self._process.pid
        return int(Path(f"/proc/{pid}/task/{pid}/children").read_text())

    def end(self, number: signal.Signals) -> int:
        """Its status."""
        self._process.send_signal(number)
        return self._process.wait(START_S)


def _answers(url: str) -> bool:
    try:
        return ask(url, "GET", "/").status == 200
    except OSError:
        return False
