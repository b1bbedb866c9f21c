"""Helpers of the group APIs: the client as the coordinator records it, and requests in chunks."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import lru_cache
from typing import TypeVar

from barnabas.coordinator.groups.context import GroupClient
from barnabas.server.request_context import RequestContext

T = TypeVar("T")
R = TypeVar("R")

CHUNK_SIZE = 200
"""A chunk takes a few milliseconds at most."""


def client_of(context: RequestContext) -> GroupClient:
    return _client(context.client_id or "", context.host, context.api_version)


@lru_cache(maxsize=4096)
def _client(client_id: str, host: str, api_version: int) -> GroupClient:
    """Kafka reports a member's host as Java writes an address: after a slash."""
    return GroupClient(client_id, f"/{host}", api_version)


async def in_chunks(
    items: Sequence[T], request: Callable[[Sequence[T]], Awaitable[list[R]]]
) -> list[R]:
    """Calls `request` for one chunk of `items` at a time, and returns all its results.

    Other requests have their turn between chunks, so that a request which names a hundred thousand
    groups does not block them.
    """
    results = await request(items[:CHUNK_SIZE])
    for start in range(CHUNK_SIZE, len(items), CHUNK_SIZE):
        await asyncio.sleep(0)
        results += await request(items[start : start + CHUNK_SIZE])
    return results
