"""Ports that stay free for whoever asked for them."""

import socket
import subprocess
import sys

import pytest

from barnabas.testing.ports import LOOPBACK, free_port


def test_a_server_listens_there_again_and_again() -> None:
    port = free_port()
    for each in port, port + 1, port, port + 1:
        with socket.create_server((LOOPBACK, each)):
            socket.create_connection((LOOPBACK, each)).close()
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection((LOOPBACK, each))


def test_nobody_who_asks_later_is_given_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("barnabas.testing.ports.PORTS", [free_port()] * 100)
    with pytest.raises(OSError, match="no free port"):
        free_port()


def test_nor_does_another_process_get_it() -> None:
    ask = f"""
from barnabas.testing import ports
ports.PORTS = [{free_port()}] * 100
ports.free_port()
"""
    done = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, timeout=60)
    assert "no free port" in done.stderr
