"""Exceptions become the protocol's error codes."""

from typing import Any

import pytest
from tests.log_records import barnabas_log_records

from barnabas.log.errors import LogDirFailure
from barnabas.server.errors import error_of
from barnabas.wire.errors import ErrorCode, KafkaError


class _Call:
    api_version, host, client_id = 9, "10.0.0.1", "k"


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
