"""The process that listens on a port, or has a file open, is found and named."""

import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.cli.operations.local_processes import (
    MAX_COMMAND_LENGTH,
    LocalProcess,
    describe_taken_directory,
    describe_taken_port,
    process_on_port,
    process_with_file,
    shorten_command,
)

PROGRAM = """
import socket, sys
family = socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET
listener = socket.create_server((sys.argv[1], 0), family=family)
file = open(sys.argv[2], "w")
print(listener.getsockname()[1], flush=True)
sys.stdin.read()
"""


class Listening:
    """A process that listens on a free port of a host and has a file open."""

    def __init__(self, host: str, file: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, host, str(file)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.pid = self._process.pid
        assert self._process.stdout is not None
        self.port = int(self._process.stdout.readline())

    def stop(self) -> None:
        self._process.communicate("")


@pytest.fixture(params=["127.0.0.1", "0.0.0.0"])
def listening(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Listening]:
    process = Listening(request.param, tmp_path / ".lock")
    yield process
    process.stop()


def test_the_process_on_a_port_of_this_machine_is_found(listening: Listening) -> None:
    for host in "127.0.0.1", "localhost":
        found = process_on_port(host, listening.port)
        assert found is not None
        assert found.pid == listening.pid
        assert f"is in use by process {listening.pid} (" in describe_taken_port(
            host, listening.port
        )


def test_the_process_with_a_file_is_found(listening: Listening, tmp_path: Path) -> None:
    found = process_with_file(tmp_path / ".lock")
    assert found is not None
    assert found.pid == listening.pid
    expected = f"{tmp_path} is in use by process {listening.pid} ("
    assert describe_taken_directory(str(tmp_path)).startswith(expected)


def test_a_port_of_another_machine_has_no_local_process(listening: Listening) -> None:
    assert process_on_port("192.0.2.1", listening.port) is None  # reserved for documentation
    assert process_on_port("no.such.host.invalid", listening.port) is None


def test_a_port_on_which_nothing_listens_has_no_process() -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        assert process_on_port("127.0.0.1", bound.getsockname()[1]) is None


def test_this_process_is_not_another_process(tmp_path: Path) -> None:
    with (tmp_path / "file").open("w") as file:
        assert process_with_file(Path(file.name)) is None


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["/usr/sbin/nginx", "-g", "daemon off;"], "nginx -g daemon off;"),
        (["/opt/venv/bin/python3", "/opt/venv/bin/barnabas", "up"], "barnabas up"),
        (["python", "-m", "barnabas.cli", "up", "--port", "1"], "barnabas up --port 1"),
        (["python3", "-m", "http.server"], "http.server"),
        (["python3"], "python3"),
        (
            ["/usr/bin/java", *["-Dkafka.logs.dir=/logs"] * 50, "kafka.Kafka", "server.properties"],
            "java ... kafka.Kafka server.properties",
        ),
        (["x", "a\nb"], "'x a\\nb'"),
        ([""], ""),
    ],
)
def test_a_command_line_is_named_as_a_person_would(words: list[str], expected: str) -> None:
    assert shorten_command(words) == expected


def test_a_long_command_line_is_cut() -> None:
    shortened = shorten_command(["grep", "x" * 1000])
    assert len(shortened) == MAX_COMMAND_LENGTH
    assert shortened.endswith("...")
    assert str(LocalProcess(7, "")) == "process 7"
