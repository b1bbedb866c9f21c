"""Clients can neither forge log lines nor flood the log."""

import logging
from collections.abc import Callable

import pytest

from barnabas.cli.logs import (
    MAX_LINE_LENGTH,
    MAX_LINES_PER_SECOND,
    RateLimitFilter,
    SingleLineFormatter,
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
