"""Turns exceptions into the protocol's error codes and messages.

`barnabas.wire.error_response` makes a response of them.
"""

import asyncio
import logging
from collections.abc import Awaitable
from typing import TypeVar, cast

from barnabas.log.errors import LogDirFailure
from barnabas.server.request_context import RequestContext
from barnabas.wire.error_response import error_response
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.schema import Message

R = TypeVar("R")

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


async def response_or_error(response: Awaitable[R], request: Message, context: RequestContext) -> R:
    """Returns the error response of a request that fails, to which others are then added."""
    try:
        return await response
    except KafkaError as error:
        failed = error_response(request, context.api_version, error.code, error.message)
        return cast("R", failed)  # a response of the same API
