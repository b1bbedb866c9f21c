"""Forwards requests that only the leader of the group can serve, and returns its response.

A request makes at most two hops: the first instance adds `forward=true`, the second
`forward=false`. The request keeps its credentials, which the leader verifies like those of any
client.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache, lru_cache, wraps
from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode, urlsplit

from starlette.requests import Request
from starlette.responses import Response

from barnabas.connect.model import ForwardToLeaderError, RequestFailedError
from barnabas.connect.rest.requests import query_flag, read_content
from barnabas.connect.rest.responses import JSON

if TYPE_CHECKING:
    import urllib3

Handler = Callable[[Request], Awaitable[Response]]

MAX_CONCURRENT_FORWARDS = 32
_SAFE = "/%:@!$&'()*+,;=~"
_NO_LEADER = (
    "Cannot complete request momentarily due to no known leader URL, likely because a rebalance "
    "was underway."
)
_TOO_MANY_HOPS = (
    "Cannot complete request because of a conflicting operation (e.g. worker rebalance)"
)


def calls_herder(handler: Handler) -> Handler:
    """Bounds the time of a request, and forwards it if only the leader can serve it."""

    @wraps(handler)
    async def handle(request: Request) -> Response:
        try:
            async with asyncio.timeout(request.app.state.timeout_s):
                return await handler(request)
        except ForwardToLeaderError as forward:
            return await _forward(request, forward.leader_url)

    return handle


async def _forward(request: Request, leader: str | None) -> Response:
    is_forwarded = "forward" in request.query_params
    if is_forwarded and not query_flag(request, "forward"):
        raise RequestFailedError(409, _TOO_MANY_HOPS)
    if leader is None:
        raise RequestFailedError(409, _NO_LEADER)
    headers = {"Accept": JSON}
    if "authorization" in request.headers:
        headers["Authorization"] = request.headers["authorization"]
    content = await read_content(request)
    if content:
        headers["Content-Type"] = JSON
    client_tls = request.app.state.client_tls
    try:
        response = await asyncio.get_running_loop().run_in_executor(
            _threads(),
            _send,
            request.method,
            leader.rstrip("/") + _target(request, forward=not is_forwarded),
            content,
            headers,
            request.app.state.timeout_s,
            client_tls() if client_tls is not None and leader.startswith("https://") else None,
        )
    except OSError as error:
        message = f"IO Error trying to forward REST request: {error}"
        raise RequestFailedError(500, message) from None
    return Response(
        response.data,
        response.status,
        _own_location(request, response.headers.get("location")),
        media_type=response.headers.get("content-type"),
    )


def _target(request: Request, *, forward: bool) -> str:
    """Returns path and query so that the leader gets them unchanged, but for `forward`."""
    parameters = [item for item in request.query_params.multi_items() if item[0] != "forward"]
    parameters.append(("forward", str(forward).lower()))
    segments = [
        segment.replace(".", "%2E") if segment in (".", "..") else segment
        for segment in quote(request.scope["path"], safe=_SAFE).split("/")
    ]
    return f"{'/'.join(segments)}?{urlencode(parameters)}"


def _own_location(request: Request, location: str | None) -> dict[str, str]:
    if location is None:
        return {}
    return {"Location": str(request.base_url).rstrip("/") + urlsplit(location).path}


def _send(
    method: str,
    url: str,
    content: bytes,
    headers: dict[str, str],
    timeout_s: float,
    tls: ssl.SSLContext | None,
) -> urllib3.BaseHTTPResponse:
    import urllib3

    try:
        return _connections(tls).request(
            method,
            url,
            body=content or None,
            headers=headers,
            timeout=timeout_s,
            retries=False,
            redirect=False,
        )
    except urllib3.exceptions.HTTPError as error:
        raise OSError(str(error)) from error


@cache
def _threads() -> ThreadPoolExecutor:
    """A pool of its own: requests to a leader that hangs use up no other threads."""
    return ThreadPoolExecutor(MAX_CONCURRENT_FORWARDS, "connect-forwarding")


@lru_cache(maxsize=8)
def _connections(tls: ssl.SSLContext | None) -> urllib3.PoolManager:
    """There is a new context when the certificates have changed."""
    import urllib3

    return urllib3.PoolManager(maxsize=MAX_CONCURRENT_FORWARDS, ssl_context=tls)
