"""Logging to standard error: one line per event, with bounded length and rate."""

import logging
import sys

MAX_LINES_PER_SECOND = 20
"""Lines that one logging statement may write per second, so that no client can fill the disk."""

MAX_LINE_LENGTH = 2_000
"""In characters. A client id may have 30,000, and a group many such members."""

_FORMAT = "%(asctime)s %(levelname)-7s %(name)s: %(message)s"


def log_to_stderr() -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(SingleLineFormatter(_FORMAT))
    handler.addFilter(RateLimitFilter())
    logging.basicConfig(level=logging.INFO, handlers=[handler])


class SingleLineFormatter(logging.Formatter):
    """Escapes control characters and cuts long lines, so that no client can forge a line.

    Tracebacks keep their lines.
    """

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802
        line = super().formatMessage(record)
        if len(line) > MAX_LINE_LENGTH:
            line = f"{line[:MAX_LINE_LENGTH]}... ({len(line)} characters)"
        if not line.isprintable():
            line = "".join(map(_escape, line))
        return line + getattr(record, "remark", "")


class RateLimitFilter(logging.Filter):
    """Limits the lines per second of each logging statement. The last one says so."""

    def __init__(self) -> None:
        super().__init__()
        self._seconds: dict[tuple[str, int], tuple[int, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        statement, second = (record.pathname, record.lineno), int(record.created)
        last, count = self._seconds.get(statement, (second, 0))
        count = count + 1 if last == second else 1
        self._seconds[statement] = (second, count)
        if count == MAX_LINES_PER_SECOND:
            record.remark = " (further lines are suppressed for a second)"
        return count <= MAX_LINES_PER_SECOND


def _escape(character: str) -> str:
    if character.isprintable():
        return character
    return character.encode("unicode_escape").decode()
