"""`barnabas registry`, and the registry of `barnabas up`."""

import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.conftest import Barnabas
from tests.registry.http_requests import half_a_request, record, send_request
from tests.registry.processes import RegistryProcess
from tests.wait import wait_until

from barnabas.testing import Broker

START_S = 60


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_registry_serves_until_a_signal_stops_it(
    kafka_broker: Broker, tmp_path: Path, number: signal.Signals
) -> None:
    registry = RegistryProcess(kafka_broker.bootstrap_servers, tmp_path / "log").wait()
    assert send_request(registry.url, "GET", "/subjects").status == 200
    assert registry.stop(number) == 0
    assert "Traceback" not in registry.output


def test_a_slow_client_gets_503_when_the_registry_stops(
    kafka_broker: Broker, tmp_path: Path
) -> None:
    registry = RegistryProcess(kafka_broker.bootstrap_servers, tmp_path / "log").wait()
    with half_a_request(registry.url, 1_000) as connection:
        wait_until(registry.is_responding, "the request is being read", START_S)
        assert registry.stop(signal.SIGTERM) == 0
        assert connection.recv(100).startswith(b"HTTP/1.1 503")
    assert "Traceback" not in registry.output


def test_a_missing_dependency_is_an_error_in_one_line(
    barnabas: Barnabas, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    result = barnabas("registry")
    assert result.exit_code == 1
    assert result.output == (
        "Error: a schema registry needs uvicorn: pip install 'barnabas[registry]'\n"
    )


def test_a_port_in_use_is_named_in_the_error(barnabas: Barnabas, kafka_broker: Broker) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = str(other.getsockname()[1])
        where = ("-b", kafka_broker.bootstrap_servers, "--host", "127.0.0.1", "--port", port)
        result = barnabas("registry", *where)
    assert result.exit_code == 1
    assert f"Port {port} is in use by " in result.output
    assert "Stop it, or choose another port: --port " in result.output


def test_up_runs_a_registry_and_stops_it(tmp_path: Path) -> None:
    up = Up(tmp_path)
    expected = send_request(up.url, "POST", "/subjects/orders-value/versions", record("x")).json
    assert expected["id"] == 1
    assert up.end(signal.SIGINT) == 0
    assert not _responds(up.url)
    assert "Traceback" not in up.output
    assert "registry | " not in up.output
    assert "is the leader of _schemas" in up.registry_log


def test_up_restarts_a_registry_that_is_killed(tmp_path: Path) -> None:
    up = Up(tmp_path)
    send_request(up.url, "POST", "/subjects/orders-value/versions", record("x"))
    os.kill(up.registry_pid, signal.SIGKILL)
    wait_until(lambda: "killed by SIGKILL" in up.output, "the kill is reported", START_S)
    wait_until(lambda: _responds(up.url), "the registry responds again", START_S)
    assert send_request(up.url, "GET", "/subjects").json == ["orders-value"]
    assert up.end(signal.SIGINT) == 0


def test_the_registry_stops_when_up_is_killed(tmp_path: Path) -> None:
    up = Up(tmp_path)
    up.end(signal.SIGKILL)
    wait_until(lambda: not _responds(up.url), "the registry has ended", START_S)


def test_up_runs_without_a_registry_if_its_port_is_in_use() -> None:
    from barnabas.cli.operations.errors import CommandError
    from barnabas.cli.registry_process import RegistryPlan

    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        registry_plan = RegistryPlan.for_port("127.0.0.1", None, port)
        with pytest.raises(CommandError, match="Choose another port: --registry-port"):
            RegistryPlan.for_port("127.0.0.1", port, 8081)
    assert registry_plan.port is None
    assert f"Port {port} is in use by " in registry_plan.banner_line
    assert "Choose another port: --registry-port" in registry_plan.banner_line


class Up:
    """`barnabas up` on free ports, with a registry that responds."""

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
        wait_until(lambda: "Schema registry: " in self.output, "the banner is shown", START_S)
        self.url = re.findall(r"Schema registry: (\S+)", self.output)[0]
        wait_until(lambda: _responds(self.url), "the registry responds", START_S)

    @property
    def output(self) -> str:
        return self._log.read_text()

    @property
    def registry_log(self) -> str:
        return (self._log.parent / "data" / "schema-registry.log").read_text()

    @property
    def registry_pid(self) -> int:
        pid = self._process.pid
        return int(Path(f"/proc/{pid}/task/{pid}/children").read_text())

    def end(self, number: signal.Signals) -> int:
        """Returns its exit status."""
        self._process.send_signal(number)
        return self._process.wait(START_S)


def _responds(url: str) -> bool:
    try:
        return send_request(url, "GET", "/").status == 200
    except OSError:
        return False
