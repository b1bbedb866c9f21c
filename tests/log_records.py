"""The log records that a test causes in our own modules, without those of other threads."""

import logging
import threading

import pytest


def barnabas_log_records(
    caplog: pytest.LogCaptureFixture, level: int = logging.DEBUG
) -> list[logging.LogRecord]:
    """Returns the records of this thread, without those of brokers and clients of other tests."""
    return [
        record
        for record in caplog.records
        if record.thread == threading.get_ident()
        and record.name.startswith("barnabas")
        and record.levelno >= level
    ]


def barnabas_log_lines(caplog: pytest.LogCaptureFixture, level: int = logging.DEBUG) -> list[str]:
    return [record.getMessage() for record in barnabas_log_records(caplog, level)]
