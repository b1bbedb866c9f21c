"""Offsets committed in a transaction are not written if it ended during the verification."""

from types import SimpleNamespace
from typing import Any

import pytest
from tests.replication.world import PendingHandler, World
from tests.server.harness import on_a_loop
from tests.server.transactions.test_produce_verification import PRODUCER, Coordinator

from barnabas.coordinator.pending_response import PendingResponse
from barnabas.server.api.txn_offset_commit import handle
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.group_offsets import TxnOffsetCommitRequest, TxnOffsetCommitResponse

OFFSETS = "__consumer_offsets"
REQUEST = TxnOffsetCommitRequest(
    transactional_id="t", group_id="g", producer_id=PRODUCER, producer_epoch=0
)


class Groups:
    """Counts the commits that reach it."""

    def __init__(self) -> None:
        self.runtime = SimpleNamespace(partition_of=lambda _: 0)
        self.commits = 0

    def txn_commit(self, request: Any, client: Any) -> PendingResponse[TxnOffsetCommitResponse]:
        self.commits += 1
        return PendingResponse.completed(TxnOffsetCommitResponse())


@pytest.fixture
def groups(world: World) -> Groups:
    made: Any = Groups()
    world.broker.groups = made
    world.create_topic(OFFSETS)
    return made  # type: ignore[no-any-return]


@pytest.fixture
def coordinator(world: World) -> Coordinator:
    made: Any = Coordinator()
    world.broker.partition_verifier = made
    return made  # type: ignore[no-any-return]


def begin(world: World, version: int = 3) -> PendingHandler:
    return world.begin_request(handle, REQUEST, version)


@pytest.mark.parametrize("version", [3, 5])
@on_a_loop
async def test_a_transactional_commit_is_written_after_its_verification(
    world: World, groups: Groups, coordinator: Coordinator, version: int
) -> None:
    coordinator.hold()
    pending = begin(world, version)
    assert (groups.commits, coordinator.asked[0][3:]) == (0, ([(OFFSETS, 0)], version == 5))
    coordinator.answer()
    pending.resume()
    assert pending.is_complete
    assert groups.commits == 1


@on_a_loop
async def test_a_transaction_that_ended_during_the_verification_is_not_opened_again(
    world: World, groups: Groups, coordinator: Coordinator
) -> None:
    coordinator.hold()
    pending = begin(world)
    world.end_transaction(OFFSETS, producer_id=PRODUCER, epoch=0, committed=False, version=0)
    coordinator.answer()
    with pytest.raises(KafkaError, match=ErrorCode.INVALID_TXN_STATE.name):
        pending.resume()
    assert groups.commits == 0


def test_an_open_transaction_is_not_verified_again(
    world: World, groups: Groups, coordinator: Coordinator
) -> None:
    world.write_in_transaction(OFFSETS, b"a", producer_id=PRODUCER)
    assert begin(world).is_complete
    assert (groups.commits, coordinator.asked) == (1, [])
