"""Runners of streaming sources are forked after the first, and live as long as Spark expects."""

import os
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.wait import wait_until

from barnabas.spark.interpreter import worker_python
from barnabas.spark.runner_forkserver import RUNNER

DEADLINE_S = 60.0

SPARK = """
import subprocess, sys
for line in sys.stdin:
    runner = [*sys.argv[1:], line.strip()]
    print(subprocess.Popen(runner, stdout=subprocess.DEVNULL).pid, flush=True)
"""
"""Simulates Spark's JVM: starts a runner for each line."""


class Application:
    """A simulated Spark application, as runners see it."""

    def __init__(self, folder: Path) -> None:
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.settimeout(DEADLINE_S)
        address = folder / "spark"
        self._listener.bind(str(address))
        self._listener.listen()
        self.process = subprocess.Popen(
            [sys.executable, "-c", SPARK, worker_python(), "-m", RUNNER],
            env={
                **os.environ,
                "SPARK_LOCAL_DIRS": str(folder),
                "PYTHON_WORKER_FACTORY_SOCK_PATH": str(address),
            },
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def start(self, name: str) -> "Runner":
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{name}\n".encode())
        self.process.stdin.flush()
        started = int(self.process.stdout.readline())
        connection, _ = self._listener.accept()
        connection.settimeout(DEADLINE_S)
        (pid,) = struct.unpack("!i", connection.recv(4))
        return Runner(started, pid, connection)

    def close(self) -> None:
        self._listener.close()
        with self.process:
            self.process.kill()


class Runner:
    def __init__(self, started: int, pid: int, connection: socket.socket) -> None:
        self.started = started  # the process that Spark started
        self.pid = pid  # the process that responds
        self.connection = connection

    @property
    def is_forked(self) -> bool:
        return self.pid != self.started


@pytest.fixture
def application(tmp_path: Path) -> Iterator[Application]:
    application = Application(tmp_path)
    yield application
    application.close()


def test_runners_after_the_first_are_forked(application: Application) -> None:
    first, second, third = (application.start(name) for name in ("one", "two", "three"))
    assert not first.is_forked
    assert second.is_forked
    assert third.is_forked
    assert "libarrow" in Path(f"/proc/{second.pid}/maps").read_text()


def test_a_runner_ends_when_spark_closes_the_connection(application: Application) -> None:
    runners = [application.start(name) for name in ("one", "two")]
    for runner in runners:
        runner.connection.close()
    left = {pid for runner in runners for pid in (runner.pid, runner.started)}
    wait_until(lambda: not any(map(is_alive, left)))


def test_a_forked_runner_ends_with_the_process_that_spark_started(application: Application) -> None:
    application.start("one")
    runner = application.start("two")
    os.kill(runner.started, signal.SIGTERM)
    assert runner.connection.recv(1) == b""
    assert application.start("three").is_forked


def test_the_fork_server_ends_with_spark(application: Application) -> None:
    left = fork_server_of(application.start("one"))
    application.process.kill()
    wait_until(lambda: not is_alive(left))


def test_the_fork_server_ends_when_spark_removes_its_files(
    application: Application, tmp_path: Path
) -> None:
    left = fork_server_of(application.start("one"))
    (socket_path,) = tmp_path.glob("*.sock")
    socket_path.unlink()
    wait_until(lambda: not is_alive(left))
    assert not application.start("two").is_forked


def fork_server_of(runner: Runner) -> int:
    (left,) = Path(f"/proc/{runner.pid}/task/{runner.pid}/children").read_text().split()
    return int(left)


def is_alive(pid: int) -> bool:
    """Whether the process exists and is not a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
