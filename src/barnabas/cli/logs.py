"""The log on standard error: a line per event, whatever clients call themselves and do."""

import logging
import sys

MAX_LINES_PER_SECOND = 20
"""How many one statement may write: a client that does all it can would fill the disk."""

MAX_LINE_LENGTH = 2_000
"""In characters. A client may have a name of thirty thousand, and a group many such members."""

_FORMAT = "%(asctime)s %(levelname)-7s %(name)s: %(message)s"


def log_to_stderr() -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(SingleLineFormatter(_FORMAT))
    handler.addFilter(RateLimitFilter())
    logging.basicConfig(level=logging.INFO, handlers=[handler])


class SingleLineFormatter(logging.Formatter):
    """Nobody can write a line of their own, or more than a screenful; tracebacks stay whole."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802
        line = super().formatMessage(record)
        if len(line) > MAX_LINE_LENGTH:
            line = f"{line[:MAX_LINE_LENGTH]}... ({len(line)} characters)"
        if not line.isprintable():
            line = "".join(map(_visible, line))
        return line + getattr(record, "remark", "")


class RateLimitFilter(logging.Filter):
    """Lets each statement write so many lines in a second. The last of them says so."""

    def __init__(self) -> None:
        super().__init__()
        self._seconds: dict[tuple[str, int], tuple[int, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        statement, second = (record.pathname, record.lineno), int(record.created)
        last, count = self._seconds.get(statement, (second, 0))
        count = count + 1 if last == second else 1
        self._seconds[statement] = (second, count)
        if count == MAX_LINES_PER_SECOND:
            record.remark = " (more of these are left out for a second)"
        return count <= MAX_LINES_PER_SECOND


def _visible(character: str) -> str:
    if character.isprintable():
        return character
    return character.encode("unicode_escape").decode()
