"""What a test has made our own modules log, whoever else lives and logs in the process."""

import logging
import threading

import pytest


def logged(caplog: pytest.LogCaptureFixture, level: int = logging.DEBUG) -> list[logging.LogRecord]:
    """The records of this thread: brokers and clients that other tests keep have their own."""
    return [
        each
        for each in caplog.records
        if each.thread == threading.get_ident()
        and each.name.startswith("barnabas")
        and each.levelno >= level
    ]


def lines(caplog: pytest.LogCaptureFixture, level: int = logging.DEBUG) -> list[str]:
    return [each.getMessage() for each in logged(caplog, level)]
