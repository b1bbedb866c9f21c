"""Producer ids are unique, and blocks are prefetched so that no producer waits."""

import pytest
from tests.coordinator.transactions.harness import BLOCK_SIZE, FIRST_ID, FakeBlocks

from barnabas.coordinator.pending_response import PendingResponse
from barnabas.coordinator.transactions.producer_ids import ProducerIdManager
from barnabas.wire.errors import ErrorCode, KafkaError


def test_ids_continue_from_block_to_block() -> None:
    ids = ProducerIdManager(FakeBlocks())
    taken = [ids.generate().result() for _ in range(2 * BLOCK_SIZE + 1)]
    assert taken == list(range(FIRST_ID, FIRST_ID + 2 * BLOCK_SIZE + 1))


def test_the_next_block_is_requested_before_this_one_ends() -> None:
    blocks = FakeBlocks()
    ids = ProducerIdManager(blocks)
    for _ in range(BLOCK_SIZE - BLOCK_SIZE // 10 - 1):
        ids.generate()
    assert blocks.request_count == 1
    blocks.held = []
    ids.generate()
    assert blocks.request_count == 2
    assert all(ids.generate().is_done for _ in range(BLOCK_SIZE // 10))
    assert not ids.generate().is_done
    assert blocks.request_count == 2, "one request at a time"


def test_every_waiting_producer_gets_its_own_id() -> None:
    blocks = FakeBlocks()
    blocks.held = []
    ids = ProducerIdManager(blocks)
    waiting = [ids.generate() for _ in range(3)]
    assert len(blocks.held) == 1
    blocks.held[0].complete(range(5, 9))
    assert [each.result() for each in waiting] == [5, 6, 7]
    assert ids.generate().result() == 8


def test_more_waiters_than_a_block_holds_wait_for_the_next() -> None:
    blocks = FakeBlocks()
    blocks.held = []
    ids = ProducerIdManager(blocks)
    waiting = [ids.generate() for _ in range(3)]
    blocks.held[0].complete(range(5, 7))
    assert [each.is_done for each in waiting] == [True, True, False]
    blocks.held[1].complete(range(50, 52))
    assert waiting[2].result() == 50


@pytest.mark.parametrize(
    "response", [PendingResponse.failed(TimeoutError()), PendingResponse.completed(range(0))]
)
def test_a_waiting_producer_has_to_retry_if_there_are_no_ids(
    response: PendingResponse[range],
) -> None:
    blocks = FakeBlocks()
    blocks.allocate = lambda: response  # type: ignore[method-assign]
    ids = ProducerIdManager(blocks)
    with pytest.raises(KafkaError) as append_error:
        ids.generate().result()
    assert append_error.value.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    blocks.allocate = lambda: PendingResponse.completed(range(3, 5))  # type: ignore[method-assign]
    assert ids.generate().result() == 3
