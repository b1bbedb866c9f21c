"""Long requests in slices: whoever names a hundred thousand things does not hold up the others."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

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
