"""Commands as processes: closed streams, signals, a full disk. None ends with a traceback."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.kafka.conftest import produce
from tests.wait import wait_until

from barnabas.testing import Broker


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        broker.create_topic("numbers", 1)
        produce(broker, "numbers", 3)
        yield broker


def start(family: str, *words: str | bytes, **streams: int) -> "subprocess.Popen[bytes]":
    streams = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE) | streams
    return subprocess.Popen([sys.executable, "-m", family, *words], **streams)  # type: ignore[call-overload]


CLI, KAFKA = "barnabas.cli", "barnabas.cli.kafka"
_AT_BROKER = ("--bootstrap-server", "<broker>")


@pytest.mark.parametrize(
    ("family", "words"),
    [
        (KAFKA, ("kafka-dump-log", "--print-data-log", "--files", "<segment>")),
        (KAFKA, ("kafka-features", "--help")),
        (KAFKA, ("kafka-configs", "--describe", "--broker", "1", "--all", *_AT_BROKER)),
        (KAFKA, ("kafka-storage", "random-uuid")),
        (CLI, ("dump-log", "-r", "<segment>")),
        (CLI, ("storage", "random-uuid")),
        (CLI, ("topics", "--help")),
    ],
)
def test_a_closed_output_ends_a_command_quietly(
    family: str, words: tuple[str, ...], broker: Broker
) -> None:
    values = {
        "<segment>": str(next(broker.directory.glob("numbers-0/*.log"))),
        "<broker>": broker.bootstrap_servers,
    }
    process = start(family, *(values.get(word, word) for word in words))
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    assert process.stderr.read() == b""
    assert process.wait(60) == 0


@pytest.mark.parametrize(
    ("family", "words"),
    [
        (KAFKA, ("kafka-console-producer", "--topic", "numbers", "--bootstrap-server", "<broker>")),
        (KAFKA, ("kafka-topics", "--list", "--bootstrap-server", "<broker>")),
        (CLI, ("produce", "numbers", "-b", "<broker>")),
        (CLI, ("topics", "list", "-b", "<broker>")),
    ],
)
def test_a_command_runs_without_standard_streams(
    family: str, words: tuple[str, ...], broker: Broker
) -> None:
    command = [word.replace("<broker>", broker.bootstrap_servers) for word in words]
    done = subprocess.run(
        ["sh", "-c", 'exec "$@" <&- >&-', "sh", sys.executable, "-m", family, *command],
        stderr=subprocess.PIPE,
        timeout=60,
        check=False,
    )
    assert b"Traceback" not in done.stderr
    assert done.returncode == 0


def test_a_full_disk_is_reported(broker: Broker) -> None:
    with Path("/dev/full").open("wb") as full:
        listing = ("kafka-topics", "--list", "--bootstrap-server", broker.bootstrap_servers)
        process = start(KAFKA, *listing, stdout=full.fileno())
        _, error = process.communicate(timeout=60)
    assert (process.returncode, error) == (1, b"No space left on device\n")


@pytest.mark.parametrize(
    ("family", "words", "status"),
    [
        (KAFKA, ("kafka-topics", "--list", "--bootstrap-server", b"\xff:1"), 1),
        (CLI, ("topics", "create", b"caf\xe9"), 2),
    ],
)
def test_an_argument_that_is_not_utf8_is_reported(
    family: str, words: tuple[str | bytes, ...], status: int
) -> None:
    process = start(family, *words)
    _, error = process.communicate(timeout=60)
    assert process.returncode == status
    assert error.decode().splitlines()[-1].endswith("is not valid UTF-8")


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.parametrize(
    ("family", "words"),
    [
        (KAFKA, ("kafka-console-consumer", "--topic", "x", "--bootstrap-server", "<broker>")),
        (KAFKA, ("kafka-consumer-groups", "--list", "--bootstrap-server", "<broker>")),
        (CLI, ("consume", "x", "-b", "<broker>")),
        (CLI, ("groups", "list", "-b", "<broker>")),
    ],
)
def test_a_signal_ends_a_command_that_waits(
    family: str, words: tuple[str, ...], number: signal.Signals, status: int
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(60)
        address = f"127.0.0.1:{server.getsockname()[1]}"
        process = start(family, *(word.replace("<broker>", address) for word in words))
        connection, _ = server.accept()
        process.send_signal(number)
        _, error = process.communicate(timeout=60)
        connection.close()
    assert process.returncode == status
    assert b"Traceback" not in error


def test_ctrl_c_ends_a_prompt() -> None:
    own, terminal = os.openpty()
    process = start(CLI, "topics", "delete", "numbers", stdin=terminal)
    assert process.stderr is not None
    prompt = b""
    while not prompt.endswith(b"[y/N]: "):
        prompt += process.stderr.read(1)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=60)
    os.close(own)
    os.close(terminal)
    assert (process.returncode, error.strip()) == (130, b"")


@pytest.mark.parametrize(
    ("family", "words", "status"),
    [
        (KAFKA, ("kafka-cluster", "cluster-id", "--command-config", "<file>"), 1),
        (CLI, ("topics", "list", "--command-config", "<file>"), 3),
        (CLI, ("consume", "x", "--command-config", "<file>"), 3),
    ],
)
def test_a_port_of_another_protocol_is_reported(
    family: str, words: tuple[str, ...], status: int, tmp_path: Path
) -> None:
    file = tmp_path / "client.properties"
    file.write_text("default.api.timeout.ms=1000\nrequest.timeout.ms=500\n")
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        command = [str(file) if word == "<file>" else word for word in words]
        process = start(family, *command, "--bootstrap-server", address)
        server.settimeout(0.1)

        def ended() -> bool:
            try:
                connection, _ = server.accept()
            except TimeoutError:
                return process.poll() is not None
            with connection:
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            return process.poll() is not None

        wait_until(ended, "the command ends", 60)
        _, error = process.communicate()
    assert process.returncode == status
    assert b"Traceback" not in error
    assert address in error.decode().splitlines()[-1]
