"""Writes are for the one instance that writes; the others pass them on and give its answer.

The answer says up to which offset `_schemas` was written. Whoever passes it on reads that far
first: who has registered a schema can read it back at once. What one does not find is asked of
the writer too: somebody else may have registered it through another instance just now.
"""

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache, wraps
from http import HTTPStatus
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import Response

from barnabas.registry import errors
from barnabas.registry.api.request_parsing import instance_of, read_content
from barnabas.registry.errors import RegistryError

if TYPE_CHECKING:
    import urllib3

Handler = Callable[[Request], Awaitable[Response]]
FORWARDED_HEADER = "X-Forward"
OFFSET_HEADER = "X-Schemas-Offset"
MAX_CONCURRENT_FORWARDS = 32
_PASSED_ON = ("accept", "content-type", "authorization")


def handled_by_leader(handler: Handler) -> Handler:
    @wraps(handler)
    async def handle(request: Request) -> Response:
        try:
            return await _handled(request, handler)
        except LeaderUnreachableError as gone:
            await instance_of(request).on_leader_lost(gone.url)
            try:
                return await _handled(request, handler)
            except LeaderUnreachableError as again:
                raise _not_passed_on(again.url, again) from None

    return handle


def falls_back_to_leader(handler: Handler) -> Handler:
    """What is not found here may be there: reads fall behind by some milliseconds."""

    @wraps(handler)
    async def handle(request: Request) -> Response:
        try:
            return await handler(request)
        except RegistryError as missing:
            writer = instance_of(request).other_leader_url
            if missing.status != HTTPStatus.NOT_FOUND or writer is None or _is_forwarded(request):
                raise
            try:
                return await _forwarded(request, writer)
            except (RegistryError, LeaderUnreachableError):
                raise missing from None

    return handle


class LeaderUnreachableError(ConnectionError):
    """Nobody listens there, so that the request was not received."""

    def __init__(self, url: str) -> None:
        super().__init__("nobody listens there")
        self.url = url


async def _handled(request: Request, handler: Handler) -> Response:
    instance = instance_of(request)
    writer = await instance.find_leader_url()
    if writer is None:
        response = await handler(request)
        response.headers[OFFSET_HEADER] = str(instance.applied_offset)
        return response
    if _is_forwarded(request):
        raise errors.no_leader("This instance does not write, and was told of no other")
    return await _forwarded(request, writer)


def _is_forwarded(request: Request) -> bool:
    return FORWARDED_HEADER in request.headers


async def _forwarded(request: Request, writer: str) -> Response:
    instance = instance_of(request)
    url = f"{writer}{request.scope['path']}?{request.scope['query_string'].decode('latin-1')}"
    headers = {name: request.headers[name] for name in _PASSED_ON if name in request.headers}
    content = await read_content(request)
    timeout_s = instance.settings.timeout_ms / 1000
    try:
        answer = await asyncio.get_running_loop().run_in_executor(
            _threads(),
            _ask,
            request.method,
            url,
            content,
            {**headers, FORWARDED_HEADER: "true"},
            timeout_s,
        )
    except ConnectionRefusedError:
        raise LeaderUnreachableError(writer) from None
    except OSError as failure:
        raise _not_passed_on(writer, failure) from None
    instance.on_leader_reachable(writer)
    await instance.wait_until_applied(int(answer.headers.get(OFFSET_HEADER, -1)))
    kind = answer.headers.get("content-type")
    return Response(answer.data, answer.status, media_type=kind)


def _not_passed_on(writer: str, failure: OSError) -> RegistryError:
    return errors.forwarding_failed(
        f"The request could not be passed on to {writer}, which writes: {failure}"
    )


def _ask(
    method: str, url: str, content: bytes, headers: dict[str, str], timeout_s: float
) -> "urllib3.BaseHTTPResponse":
    import urllib3

    try:
        return _connections().request(
            method, url, body=content, headers=headers, timeout=timeout_s, retries=False
        )
    except urllib3.exceptions.HTTPError as failure:
        if isinstance(failure.__cause__, ConnectionRefusedError):
            raise failure.__cause__ from None
        raise OSError(str(failure)) from failure


@cache
def _threads() -> ThreadPoolExecutor:
    """Of their own: waiting for a writer that hangs must not keep reads from theirs."""
    return ThreadPoolExecutor(MAX_CONCURRENT_FORWARDS, "passing-on")


@cache
def _connections() -> "urllib3.PoolManager":
    import urllib3

    return urllib3.PoolManager(maxsize=MAX_CONCURRENT_FORWARDS)
