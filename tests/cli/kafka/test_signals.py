"""Admin commands that are not let finish: no traceback, and the status Unix has for it."""

import signal
import socket
import subprocess
import sys

import pytest

from barnabas.testing import Broker


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_the_wait_for_a_response(number: signal.Signals, status: int) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(60)
        process = _start("kafka-topics", f"127.0.0.1:{server.getsockname()[1]}", "--list")
        connection, _ = server.accept()
        process.send_signal(number)
        _, expected = process.communicate(timeout=60)
        connection.close()
    assert (process.returncode, expected) == (status, b"")


def test_a_closed_output_ends_the_command(broker: Broker) -> None:
    process = _start("kafka-configs", broker.bootstrap_servers, "--describe", "--broker", "1",
                     "--all")  # fmt: skip
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    assert process.stderr.read() == b""
    assert process.wait(60) == 0


def _start(name: str, servers: str, *arguments: str) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", "barnabas.cli.kafka", name, "--bootstrap-server", servers]
    return subprocess.Popen([*command, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
