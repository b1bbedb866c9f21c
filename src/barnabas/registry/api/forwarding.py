"""Forwards writes to the leader, and returns its response.

The response has the offset up to which the leader has written `_schemas`. The forwarding instance
reads up to there first, so that a client which has registered a schema can read it back at once. A
lookup that finds nothing here is forwarded too: the schema may just have been registered through
another instance.

Nobody can claim an identity by forwarding: the request keeps its credentials, and the leader
verifies them like those of any client. So an instance with TLS forwards only to one with TLS,
whose certificate it verifies.
"""

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache, lru_cache, wraps
from http import HTTPStatus
from typing import TYPE_CHECKING
from urllib.parse import quote

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
_SAFE = "/%:?@!$&'()*+,;="
_FORWARDED_HEADERS = ("accept", "content-type", "authorization")


def handled_by_leader(handler: Handler) -> Handler:
    @wraps(handler)
    async def handle(request: Request) -> Response:
        try:
            return await _handle_or_forward(request, handler)
        except LeaderUnreachableError as unreachable:
            await instance_of(request).on_leader_lost(unreachable.url)
            try:
                return await _handle_or_forward(request, handler)
            except LeaderUnreachableError as again:
                raise _forwarding_error(again.url, again) from None

    return handle


def falls_back_to_leader(handler: Handler) -> Handler:
    """Forwards a lookup that finds nothing here: reads may be some milliseconds behind."""

    @wraps(handler)
    async def handle(request: Request) -> Response:
        try:
            return await handler(request)
        except RegistryError as missing:
            leader = instance_of(request).other_leader_url
            if missing.status != HTTPStatus.NOT_FOUND or leader is None or _is_forwarded(request):
                raise
            try:
                return await _forward(request, leader)
            except (RegistryError, LeaderUnreachableError):
                raise missing from None

    return handle


class LeaderUnreachableError(ConnectionError):
    """No process listens at the leader's address, so the request was not received."""

    def __init__(self, url: str) -> None:
        super().__init__("nobody listens there")
        self.url = url


async def _handle_or_forward(request: Request, handler: Handler) -> Response:
    instance = instance_of(request)
    leader = await instance.find_leader_url()
    if leader is None:
        response = await handler(request)
        response.headers[OFFSET_HEADER] = str(instance.applied_offset)
        return response
    if _is_forwarded(request):
        raise errors.no_leader("This instance is not the leader, and knows no leader")
    return await _forward(request, leader)


def _is_forwarded(request: Request) -> bool:
    return FORWARDED_HEADER in request.headers


async def _forward(request: Request, leader: str) -> Response:
    instance = instance_of(request)
    url = leader + target_of(request.scope["path"], request.scope["query_string"])
    headers = {
        name: request.headers[name] for name in _FORWARDED_HEADERS if name in request.headers
    }
    if instance.tls is not None and not leader.startswith("https://"):
        raise errors.forwarding_failed(
            f"The leader {leader} does not use TLS, and the request may have a password"
        )
    content = await read_content(request)
    timeout_s = instance.settings.timeout_ms / 1000
    try:
        response = await asyncio.get_running_loop().run_in_executor(
            _threads(),
            _send,
            request.method,
            url,
            content,
            {**headers, FORWARDED_HEADER: "true"},
            timeout_s,
            instance.tls.client if instance.tls is not None else None,
        )
    except ConnectionRefusedError:
        raise LeaderUnreachableError(leader) from None
    except OSError as failure:
        raise _forwarding_error(leader, failure) from None
    instance.on_leader_reachable(leader)
    await instance.wait_until_applied(int(response.headers.get(OFFSET_HEADER, -1)))
    content_type = response.headers.get("content-type")
    return Response(response.data, response.status, media_type=content_type)


def target_of(path: str, query: bytes) -> str:
    """Returns the path and the query of a request so that the leader gets them unchanged.

    Clients of HTTP remove the segments `.` and `..`, and what follows a `#`: the leader would then
    change another subject than the one that was requested.
    """
    segments = [
        segment.replace(".", "%2E") if segment in (".", "..") else segment
        for segment in quote(path.encode("latin-1"), safe=_SAFE).split("/")
    ]
    return f"{'/'.join(segments)}?{quote(query, safe=_SAFE)}"


def _forwarding_error(leader: str, failure: OSError) -> RegistryError:
    return errors.forwarding_failed(
        f"The request could not be passed on to {leader}, which writes: {failure}"
    )


def _send(
    method: str,
    url: str,
    content: bytes,
    headers: dict[str, str],
    timeout_s: float,
    tls: ssl.SSLContext | None,
) -> "urllib3.BaseHTTPResponse":
    import urllib3

    try:
        return _connections(tls).request(
            method, url, body=content, headers=headers, timeout=timeout_s, retries=False
        )
    except urllib3.exceptions.HTTPError as failure:
        if isinstance(failure.__cause__, ConnectionRefusedError):
            raise failure.__cause__ from None
        raise OSError(str(failure)) from failure


@cache
def _threads() -> ThreadPoolExecutor:
    """A pool of its own: requests to a leader that hangs must not use up the threads of reads."""
    return ThreadPoolExecutor(MAX_CONCURRENT_FORWARDS, "registry-forwarding")


@lru_cache(maxsize=8)
def _connections(tls: ssl.SSLContext | None) -> "urllib3.PoolManager":
    """There is a new context when the certificates have changed."""
    import urllib3

    return urllib3.PoolManager(maxsize=MAX_CONCURRENT_FORWARDS, ssl_context=tls)
