"""Reserved loopback ports."""

import socket
import subprocess
import sys

import pytest

from barnabas.testing.ports import LOOPBACK, free_port


def test_a_server_can_listen_repeatedly_on_a_reserved_port() -> None:
    port = free_port()
    for number in port, port + 1, port, port + 1:
        with socket.create_server((LOOPBACK, number)):
            socket.create_connection((LOOPBACK, number)).close()
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection((LOOPBACK, number))


def test_a_reserved_port_is_not_returned_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("barnabas.testing.ports.PORTS", [free_port()] * 100)
    with pytest.raises(OSError, match="no free port"):
        free_port()


def test_a_reserved_port_is_not_free_for_another_process() -> None:
    ask = f"""
from barnabas.testing import ports
ports.PORTS = [{free_port()}] * 100
ports.free_port()
"""
    done = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, timeout=60)
    assert "no free port" in done.stderr


def test_no_socket_of_a_reserved_port_is_left_to_the_garbage_collector() -> None:
    reserve = """
from barnabas.testing import ports
ports.MAX_RESERVED = 2
for _ in range(4):
    ports.free_port()
"""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", reserve], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")
