"""Clients can neither forge log lines nor flood the log; a log file has a bounded size."""

import logging
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from barnabas.cli.logs import (
    MAX_LINE_LENGTH,
    MAX_LINES_PER_SECOND,
    OLD_FILES,
    RateLimitFilter,
    SingleLineFormatter,
    log_to_file,
)

Log = Callable[..., list[str]]


@pytest.fixture
def log() -> Log:
    """Logs a message at a given second, and returns the lines."""
    rate_limit, formatter = RateLimitFilter(), SingleLineFormatter("%(levelname)s %(message)s")

    def log(message: str, *names: str, second: int = 0, line: int = 1) -> list[str]:
        record = logging.LogRecord("barnabas", logging.INFO, "x.py", line, message, names, None)
        record.created = second + 0.5
        return [formatter.format(record)] if rate_limit.filter(record) else []

    return log


def test_control_characters_are_escaped(log: Log) -> None:
    assert log("group %s: rebalances", "g\nERROR all is lost\x1b[31m\ud800 é") == [
        "INFO group g\\nERROR all is lost\\x1b[31m\\ud800 é: rebalances"
    ]


def test_a_long_line_is_cut(log: Log) -> None:
    (line,) = log("group %s: rebalances", "g" * 30_000)
    assert len(line) < MAX_LINE_LENGTH + 50
    assert line.endswith("g... (30023 characters)")


def test_lines_per_second_of_a_statement_are_limited(log: Log) -> None:
    lines = [line for _ in range(100) for line in log("again")]
    assert lines[:-1] == ["INFO again"] * (MAX_LINES_PER_SECOND - 1)
    assert lines[-1] == "INFO again (further lines are suppressed for a second)"
    assert log("another", line=2) == ["INFO another"]
    assert log("again", second=1) == ["INFO again"]


def test_tracebacks_keep_their_lines() -> None:
    try:
        raise ValueError("bad")
    except ValueError as error:
        fault = (type(error), error, error.__traceback__)
    record = logging.LogRecord("barnabas", logging.ERROR, "x.py", 1, "failed", (), fault)
    assert SingleLineFormatter("%(message)s").format(record).splitlines()[:2] == [
        "failed",
        "Traceback (most recent call last):",
    ]


# The log file of `barnabas up`


@contextmanager
def logging_to(file: Path, *, verbose: bool = False) -> Iterator[logging.Logger]:
    """Logs to a file instead of what the test runner set up."""
    root = logging.getLogger()
    before, root.handlers = root.handlers, []
    level = root.level
    try:
        log_to_file(file, verbose=verbose)
        yield logging.getLogger("barnabas.cli.example")
    finally:
        for handler in root.handlers:
            with suppress(OSError):  # what a full disk did not take
                handler.close()
        root.handlers = before
        root.setLevel(level)


@pytest.mark.parametrize("verbose", [False, True])
def test_the_file_has_everything_and_the_terminal_warnings_unless_verbose(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], verbose: bool
) -> None:
    file = tmp_path / "server.log"
    with logging_to(file, verbose=verbose) as logger:
        logger.info("the node listens")
        logger.warning("a setting is not known")
    written = [line.partition(" ")[2] for line in file.read_text().splitlines()]
    assert [line[13:] for line in written] == [
        "INFO    barnabas.cli.example: the node listens",
        "WARNING barnabas.cli.example: a setting is not known",
    ]
    printed = capsys.readouterr().err
    if verbose:
        assert printed == file.read_text()
    else:
        assert re.fullmatch(r"\d\d:\d\d:\d\d WARNING: a setting is not known\n", printed)


def test_the_files_have_a_bounded_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("barnabas.cli.logs.MAX_FILE_BYTES", 200)
    with logging_to(tmp_path / "server.log") as logger:
        for line in range(100):
            record = {"msg": "x" * 100, "levelno": logging.INFO, "lineno": line}
            logger.handle(logging.makeLogRecord(record))
    files = sorted(path.name for path in tmp_path.iterdir())
    assert files == ["server.log", *(f"server.log.{number + 1}" for number in range(OLD_FILES))]


def test_a_full_disk_is_reported_once_and_warnings_still_reach_the_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with logging_to(Path("/dev/full")) as logger:
        logger.warning("first")
        logger.warning("second")
    printed = capsys.readouterr().err
    assert printed.count("/dev/full cannot be written: ") == 1
    assert "WARNING: first" in printed
    assert "WARNING: second" in printed
    assert "Traceback" not in printed
