"""Exceptions become the protocol's error codes."""

from typing import Any

import pytest
from tests.log_records import barnabas_log_records

from barnabas.log.errors import LogDirFailure
from barnabas.server.errors import error_of
from barnabas.wire.errors import ErrorCode, KafkaError


class _Call:
    api_version, host = 9, "10.0.0.1"

    def __init__(self, client_id: str | None = "k") -> None:
        self.client_id = client_id


@pytest.mark.parametrize(
    ("failure", "code"),
    [
        (KafkaError(ErrorCode.INVALID_REQUEST, "why"), ErrorCode.INVALID_REQUEST),
        (LogDirFailure("/d", OSError(28, "full")), ErrorCode.KAFKA_STORAGE_ERROR),
        (TimeoutError(), ErrorCode.REQUEST_TIMED_OUT),
        (ZeroDivisionError("oh"), ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
)
def test_exceptions_have_codes(failure: Exception, code: ErrorCode) -> None:
    context: Any = _Call()
    assert error_of(failure, "Produce", context)[0] is code


def test_an_internal_error_is_logged_with_a_traceback(caplog: pytest.LogCaptureFixture) -> None:
    context: Any = _Call()
    error_of(ZeroDivisionError("oh"), "Produce", context)
    (record,) = barnabas_log_records(caplog)
    assert "Produce v9 from 10.0.0.1" in record.getMessage()
    assert record.exc_info is not None


@pytest.mark.parametrize(
    ("client_id", "line"),
    [
        ("k", "Produce v9 from 10.0.0.1 (client k) failed"),
        ("", "Produce v9 from 10.0.0.1 failed"),
        (None, "Produce v9 from 10.0.0.1 failed"),
    ],
)
def test_the_line_of_an_internal_error_has_a_client_id_only_if_there_is_one(
    client_id: str | None, line: str, caplog: pytest.LogCaptureFixture
) -> None:
    context: Any = _Call(client_id)
    error_of(ZeroDivisionError("oh"), "Produce", context)
    (record,) = barnabas_log_records(caplog)
    assert record.getMessage() == line
