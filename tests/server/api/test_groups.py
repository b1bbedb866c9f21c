"""Long requests are handled in chunks, and disabled protocols are refused."""

import asyncio
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from tests.server.harness import on_a_loop

from barnabas.server.api.groups import (
    CHUNK_SIZE,
    consumer_heartbeat,
    describe_consumer_groups,
    in_chunks,
)
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.consumer_groups import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupHeartbeatRequest,
)


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


@pytest.mark.parametrize(
    ("protocols", "features", "reason"),
    [
        (["classic", "streams"], {"group.version": 1}, "group.coordinator.rebalance.protocols"),
        (["classic", "consumer"], {}, "group.version is at level 0"),
    ],
)
@on_a_loop
async def test_a_disabled_consumer_protocol_is_refused_with_the_reason(
    protocols: list[str], features: dict[str, int], reason: str
) -> None:
    context: Any = SimpleNamespace(
        broker=SimpleNamespace(
            resolver=SimpleNamespace(
                broker={"group.coordinator.rebalance.protocols": protocols}.get
            ),
            image=SimpleNamespace(features=features),
        )
    )
    with pytest.raises(KafkaError, match=reason) as refused:
        await consumer_heartbeat(ConsumerGroupHeartbeatRequest(group_id="g"), context)
    assert refused.value.code is ErrorCode.UNSUPPORTED_VERSION
    with pytest.raises(KafkaError, match=reason):
        await describe_consumer_groups(ConsumerGroupDescribeRequest(group_ids=["g"]), context)
