"""The daemon serves Spark as Spark's own does, and its workers have imported what they need."""

import os
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.spark.daemon import ignore_broken_pipe

ANSWER_S = 60


@pytest.fixture
def daemon() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(
        [sys.executable, "-m", "barnabas.spark.daemon", "pyspark.worker"],
        env={**os.environ, "PYTHON_WORKER_FACTORY_SECRET": "secret"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        process_group=0,  # at its end it sends a signal to all of its group
    ) as process:
        yield process
        process.kill()


def test_the_daemon_first_prints_its_port_and_a_worker_responds_there(
    daemon: subprocess.Popen[bytes],
) -> None:
    with connected(daemon) as connection:
        (pid,) = struct.unpack(">i", connection.recv(4))
        assert Path(f"/proc/{pid}").exists()
        assert pid != daemon.pid


def test_a_worker_has_the_modules_of_tasks_without_importing_them(
    daemon: subprocess.Popen[bytes],
) -> None:
    with connected(daemon) as connection:
        (pid,) = struct.unpack(">i", connection.recv(4))
        mapped = Path(f"/proc/{pid}/maps").read_text()
    assert "libarrow" in mapped
    assert "barnabas/wire/records" in mapped


def test_the_daemon_ends_when_spark_closes_its_standard_input(
    daemon: subprocess.Popen[bytes],
) -> None:
    with connected(daemon):
        assert daemon.stdin is not None
        daemon.stdin.close()
        daemon.wait(ANSWER_S)


def test_a_worker_ends_silently_when_spark_closes_the_connection(
    capfd: pytest.CaptureFixture[str],
) -> None:
    def answering_nobody(_: socket.socket, authenticated: bool) -> int:
        raise BrokenPipeError

    with socket.socket() as connection:
        assert ignore_broken_pipe(answering_nobody)(connection, True) == 1
        assert ignore_broken_pipe(lambda *_: 0)(connection, True) == 0
    assert capfd.readouterr().err == ""


def connected(daemon: subprocess.Popen[bytes]) -> socket.socket:
    assert daemon.stdout is not None
    (port,) = struct.unpack(">i", daemon.stdout.read(4))
    return socket.create_connection(("127.0.0.1", port), timeout=ANSWER_S)
