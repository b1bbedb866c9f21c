"""Turns exceptions into the protocol's error codes and messages.

`barnabas.wire.error_response` makes a response of them.
"""

import asyncio
import logging

from barnabas.log.failures import LogDirFailure
from barnabas.server.request_context import RequestContext
from barnabas.wire.errors import ErrorCode, KafkaError

log = logging.getLogger(__name__)


def failure_of(failure: BaseException, api_name: str, call: RequestContext) -> tuple[ErrorCode, str]:
    """The code and the message by which a client learns of an exception."""
    match failure:
        case KafkaError():
            return failure.code, failure.message
        case LogDirFailure():
            return ErrorCode.KAFKA_STORAGE_ERROR, str(failure)
        case TimeoutError() | asyncio.CancelledError():
            return ErrorCode.REQUEST_TIMED_OUT, str(failure)
    log.error(
        "%s v%d from %s (client %s) failed",
        api_name,
        call.api_version,
        call.host,
        call.client_id,
        exc_info=failure,
    )
    return ErrorCode.UNKNOWN_SERVER_ERROR, f"{type(failure).__name__}: {failure}"
