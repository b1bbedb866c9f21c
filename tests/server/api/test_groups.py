"""Long requests are handled in chunks."""

import asyncio
from collections.abc import Sequence

from tests.server.harness import on_a_loop

from barnabas.server.api.groups import CHUNK_SIZE, in_chunks


@on_a_loop
async def test_all_chunks_return_in_order_and_others_have_their_turn() -> None:
    turns: list[int] = []

    async def double(some: Sequence[int]) -> list[int]:
        turns.append(len(some))
        return [2 * item for item in some]

    async def count_turns() -> int:
        between = 0
        while sum(turns) < 3 * CHUNK_SIZE + 1:
            await asyncio.sleep(0)
            between += 1
        return between

    others = asyncio.ensure_future(count_turns())
    requested = range(3 * CHUNK_SIZE + 1)
    assert await in_chunks(requested, double) == [2 * item for item in requested]
    assert turns == [CHUNK_SIZE, CHUNK_SIZE, CHUNK_SIZE, 1]
    assert await others >= 3


@on_a_loop
async def test_no_items_have_no_results() -> None:
    async def ask(some: Sequence[int]) -> list[int]:
        return list(some)

    assert await in_chunks([], ask) == []
