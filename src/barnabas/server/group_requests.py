"""The sender of a request as the groups' coordinator remembers it."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import lru_cache
from typing import TypeVar

from barnabas.coordinator.groups.client import Client
from barnabas.server.request_context import Call


def client_of(call: Call) -> Client:
    return _client(call.client_id or "", call.host, call.api_version)


@lru_cache(maxsize=4096)
def _client(client_id: str, host: str, api_version: int) -> Client:
    """Kafka tells of a member's host as Java writes an address: after a slash."""
    return Client(client_id, f"/{host}", api_version)


T = TypeVar("T")
R = TypeVar("R")

SLICE = 200
"""A few milliseconds' worth at the most."""


async def in_slices(
    wanted: Sequence[T], ask: Callable[[Sequence[T]], Awaitable[list[R]]]
) -> list[R]:
    """What `ask` answers to all that is wanted, asked slice by slice; others have their turn in
    between."""
    answers = await ask(wanted[:SLICE])
    for start in range(SLICE, len(wanted), SLICE):
        await asyncio.sleep(0)
        answers += await ask(wanted[start : start + SLICE])
    return answers
