"""Logging to standard error or to a file: one line per event, with bounded length and rate."""

import contextlib
import logging
import sys
from logging.handlers import RotatingFileHandler
from pathlib import Path

import click

MAX_LINES_PER_SECOND = 20
"""Lines that one logging statement may write per second, so that no client can fill the disk."""

MAX_LINE_LENGTH = 2_000
"""In characters. A client id may have 30,000, and a group many such members."""

MAX_FILE_BYTES = 10 << 20
OLD_FILES = 4
"""A full file is renamed to `server.log.1`, and so on; older ones are removed."""

_FORMAT = "%(asctime)s %(levelname)-7s %(name)s: %(message)s"
_TERMINAL_FORMAT = "%(asctime)s %(levelname)s: %(message)s"
_TERMINAL_TIME_FORMAT = "%H:%M:%S"


def configure_logging(file: Path | None, *, verbose: bool) -> None:
    """Logs to the file if there is one, and otherwise to standard error, as services do."""
    if file is None:
        log_to_stderr()
    else:
        log_to_file(file, verbose=verbose)


def log_to_stderr() -> None:
    """Logs everything to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    _write_lines(handler, SingleLineFormatter(_FORMAT))
    logging.basicConfig(level=logging.INFO, handlers=[handler])


def log_to_file(file: Path, *, verbose: bool) -> bool:
    """Logs everything to a file. Warnings go to standard error too; if `verbose`, everything.

    Returns False if the file cannot be written: everything goes to standard error then.
    """
    try:
        in_file = LogFileHandler(file)
    except OSError as error:
        log_to_stderr()
        logging.getLogger(__name__).warning("%s cannot be written: %s", file, error.strerror)
        return False
    _write_lines(in_file, SingleLineFormatter(_FORMAT))
    terminal = logging.StreamHandler(sys.stderr)
    if verbose:
        _write_lines(terminal, SingleLineFormatter(_FORMAT))
    else:
        terminal.setLevel(logging.WARNING)
        _write_lines(terminal, SingleLineFormatter(_TERMINAL_FORMAT, _TERMINAL_TIME_FORMAT))
    logging.basicConfig(level=logging.INFO, handlers=[in_file, terminal])
    return True


def _write_lines(handler: logging.Handler, formatter: "SingleLineFormatter") -> None:
    handler.setFormatter(formatter)
    handler.addFilter(RateLimitFilter())


class LogFileHandler(RotatingFileHandler):
    """A log file of bounded size. That it cannot be written is reported once."""

    def __init__(self, file: Path) -> None:
        super().__init__(file, maxBytes=MAX_FILE_BYTES, backupCount=OLD_FILES, encoding="utf-8")
        self._is_failing = False

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802
        """Called while the exception of a failed write is handled."""
        if not self._is_failing:
            self._is_failing = True
            with contextlib.suppress(OSError):
                click.echo(f"{self.baseFilename} cannot be written: {sys.exc_info()[1]}", err=True)


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
