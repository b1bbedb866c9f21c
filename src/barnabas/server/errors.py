"""Turns exceptions into the protocol's error codes and messages.

`barnabas.wire.error_response` makes a response of them.
"""

import asyncio
import logging

from barnabas.log.errors import LogDirFailure
from barnabas.server.request_context import RequestContext
from barnabas.wire.errors import ErrorCode, KafkaError

log = logging.getLogger(__name__)


def error_of(
    failure: BaseException, api_name: str, context: RequestContext
) -> tuple[ErrorCode, str]:
    """Returns the error code and message that a client receives for an exception."""
    match failure:
        case KafkaError():
            return failure.code, failure.message
        case LogDirFailure():
            return ErrorCode.KAFKA_STORAGE_ERROR, str(failure)
        case TimeoutError() | asyncio.CancelledError():
            return ErrorCode.REQUEST_TIMED_OUT, str(failure)
    client = f" (client {context.client_id})" if context.client_id else ""
    log.error(
        "%s v%d from %s%s failed",
        api_name,
        context.api_version,
        context.host,
        client,
        exc_info=failure,
    )
    return ErrorCode.UNKNOWN_SERVER_ERROR, f"{type(failure).__name__}: {failure}"
