"""No command ends with a traceback, whatever users enter."""

import io
import re
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.cli.command_lines import BARNABAS_LINES, KAFKA_LINES
from tests.cli.kafka.conftest import produce

from barnabas.cli.kafka import COMMANDS
from barnabas.cli.root_command import SUBCOMMANDS, barnabas
from barnabas.testing import Broker

HARMLESS = {
    "name": "numbers",
    "regex": "numbers",
    "number": "1",
    "pair": "retention.ms=1000",
    "registry": "http://127.0.0.1:1",
}
HOSTILE = {
    "name": ("", "-1", "no such", "a" * 300, "é", "a=b", ":::,,"),
    "regex": ("*x", "(", "[", "", "\\", "a{2,1}"),
    "number": ("-1", "x", "", "99999999999999999999", "1.5", "nan"),
    "pair": ("x", "=", "=1", "a=", ""),
    "file": (
        "missing",
        "missing.log",
        "directory",
        "directory.log",
        "binary",
        "00000000000000000001.log",
        "00000000000000000001.index",
        "00000000000000000001.timeindex",
        "00000000000000000001.snapshot",
        "snapshot.checkpoint",
        "list.json",
        "types.json",
        "numbers.json",
        "bad.properties",
    ),
}
PLACEHOLDER = re.compile("<(name|regex|number|pair|file|broker|registry)>")
STATUSES = (0, 1, 2, 3)


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        broker.create_topic("numbers", 1)
        produce(broker, "numbers", 3)
        yield broker


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory of hostile files, and an empty one that harms nobody."""
    path = tmp_path_factory.mktemp("files")
    (path / "empty").write_bytes(b"")
    for name in HOSTILE["file"]:
        if name.startswith(("binary", "0", "snapshot")):
            (path / name).write_bytes(bytes(range(255)) * 4)
    for name in "directory", "directory.log":
        (path / name).mkdir()
    (path / "list.json").write_text("[1, null]")
    (path / "types.json").write_text(
        '{"partitions": [{"topic": 1, "partition": "x", "replicas": 3}], "topics": [3]}'
    )
    (path / "numbers.json").write_text(
        '{"partitions": [{"topic": "numbers", "partition": -1, "offset": -7, "replicas": [-3]}],'
        ' "topics": [{"topic": ""}]}'
    )
    (path / "bad.properties").write_text("\\u12zz=1\nbootstrap.servers\nrequest.timeout.ms=-4\n")
    return path


def test_every_command_is_tried() -> None:
    assert {line.split()[0] for line in KAFKA_LINES} == set(COMMANDS)
    assert {line.split()[0] for line in BARNABAS_LINES} == set(SUBCOMMANDS)


def hostile_lines(line: str, directory: Path, broker: Broker) -> Iterator[list[str]]:
    """Yields the words of the line, each time with one hostile value."""
    words = line.split()
    harmless = HARMLESS | {"broker": broker.bootstrap_servers, "file": str(directory / "empty")}
    filled = [PLACEHOLDER.sub(lambda match: harmless[match[1]], word) for word in words]
    yield filled
    for at, word in enumerate(words):
        match = PLACEHOLDER.search(word)
        for value in () if match is None else HOSTILE.get(match[1], ()):
            text = str(directory / value) if match is not None and match[1] == "file" else value
            hostile = word.replace(match[0], text) if match is not None else word
            yield [*filled[:at], hostile, *filled[at + 1 :]]


@pytest.mark.parametrize("line", KAFKA_LINES)
def test_a_kafka_command_reports_hostile_values(
    line: str,
    directory: Path,
    broker: Broker,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, *arguments in hostile_lines(line, directory, broker):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"1\n")))
        main = import_module(f"barnabas.cli.kafka.{COMMANDS[name]}").main
        try:
            status = main(arguments)
        except SystemExit as ended:
            status = ended.code
        printed = capsys.readouterr()
        assert status in (0, 1), (arguments, printed.err)
        assert "Traceback" not in printed.err, arguments
        if status:
            assert printed.err.strip() or printed.out.strip(), arguments


@pytest.mark.parametrize("line", BARNABAS_LINES)
def test_a_barnabas_command_reports_hostile_values_in_one_line(
    line: str,
    directory: Path,
    broker: Broker,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    for words in hostile_lines(line, directory, broker):
        result = CliRunner().invoke(barnabas, words, input=b"1\n")
        assert result.exception is None or isinstance(result.exception, SystemExit), words
        assert result.exit_code in STATUSES, (words, result.stderr)
        if result.exit_code:
            errors = [row for row in result.stderr.splitlines() if row.startswith("Error: ")]
            assert len(errors) == 1, (words, result.stderr)
