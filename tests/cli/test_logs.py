"""What clients say and do cannot forge the log, nor flood it."""

import logging
from collections.abc import Callable

import pytest

from barnabas.cli.logs import (
    MAX_LINE_LENGTH,
    MAX_LINES_PER_SECOND,
    RateLimitFilter,
    SingleLineFormatter,
)

Say = Callable[..., list[str]]


@pytest.fixture
def say() -> Say:
    """Logs a message at some second; the lines that come of it."""
    moderation, form = RateLimitFilter(), SingleLineFormatter("%(levelname)s %(message)s")

    def say(message: str, *names: str, second: int = 0, line: int = 1) -> list[str]:
        record = logging.LogRecord("barnabas", logging.INFO, "x.py", line, message, names, None)
        record.created = second + 0.5
        return [form.format(record)] if moderation.filter(record) else []

    return say


def test_a_name_with_control_characters_stays_in_its_line(say: Say) -> None:
    assert say("group %s: rebalances", "g\nERROR all is lost\x1b[31m\ud800 é") == [
        "INFO group g\\nERROR all is lost\\x1b[31m\\ud800 é: rebalances"
    ]


def test_a_long_name_is_cut(say: Say) -> None:
    (line,) = say("group %s: rebalances", "g" * 30_000)
    assert len(line) < MAX_LINE_LENGTH + 50
    assert line.endswith("g... (30023 characters)")


def test_a_statement_writes_so_many_lines_a_second_and_says_when_it_stops(say: Say) -> None:
    lines = [line for _ in range(100) for line in say("again")]
    assert lines[:-1] == ["INFO again"] * (MAX_LINES_PER_SECOND - 1)
    assert lines[-1] == "INFO again (further lines are suppressed for a second)"
    assert say("another", line=2) == ["INFO another"]
    assert say("again", second=1) == ["INFO again"]


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
