"""Transactional batches: when they are verified, and what follows from the result."""

from collections.abc import Sequence
from typing import Any

import pytest
from tests.replication.world import PendingHandler, World, batch_of
from tests.server.harness import on_a_loop

from barnabas.coordinator.pending_response import PendingResponse
from barnabas.coordinator.transactions.markers import PartitionErrorCodes
from barnabas.coordinator.transactions.metadata import TopicPartition
from barnabas.server.api.produce import handle
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    TopicProduceData,
)

PRODUCER = 5


class Coordinator:
    """A coordinator that responds what and when the test says."""

    def __init__(self) -> None:
        self.code = ErrorCode.NONE
        self.asked: list[tuple[str, int, int, list[TopicPartition], bool]] = []
        self.waiting: list[PendingResponse[PartitionErrorCodes]] | None = None

    def verify_or_add(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: Sequence[TopicPartition],
        *,
        add: bool,
    ) -> PendingResponse[PartitionErrorCodes]:
        self.asked.append((transactional_id, producer_id, producer_epoch, list(partitions), add))
        if self.waiting is None:
            return PendingResponse.completed(dict.fromkeys(partitions, self.code))
        self.waiting.append(PendingResponse())
        return self.waiting[-1]

    def hold(self) -> None:
        self.waiting = []

    def answer(self, code: ErrorCode = ErrorCode.NONE) -> None:
        """Sends the oldest pending response."""
        assert self.waiting is not None
        number = len(self.asked) - len(self.waiting)
        self.waiting.pop(0).complete(dict.fromkeys(self.asked[number][3], code))


@pytest.fixture
def coordinator(world: World) -> Coordinator:
    made: Any = Coordinator()
    world.broker.partition_verifier = made
    world.create_topic("orders", 3)
    return made  # type: ignore[no-any-return]


def of_transaction(*values: bytes, sequence: int = 0, epoch: int = 0, **fields: Any) -> memoryview:
    return batch_of(
        *values,
        **{
            "transactional": True,
            "producer_id": PRODUCER,
            "producer_epoch": epoch,
            "base_sequence": sequence,
            **fields,
        },
    )


def request(*batches: Any, topic: str = "orders", acks: int = -1, **fields: Any) -> ProduceRequest:
    """One batch for every partition, in order."""
    return ProduceRequest(
        acks=acks,
        timeout_ms=1_000,
        transactional_id="t",
        topic_data=[
            TopicProduceData(
                name=topic,
                topic_id=topic.encode().ljust(16, b"\0"),
                partition_data=[
                    PartitionProduceData(index=index, records=records)
                    for index, records in enumerate(batches)
                ],
            )
        ],
        **fields,
    )


def produce(world: World, *batches: Any, version: int = 12) -> list[PartitionProduceResponse]:
    response: Any = world.request(handle, request(*batches), version)
    return partition_responses(response)


def partition_responses(response: Any) -> list[PartitionProduceResponse]:
    return [result for topic in response.responses for result in topic.partition_responses]


def codes(responses: Sequence[PartitionProduceResponse]) -> list[ErrorCode]:
    return [ErrorCode(response.error_code) for response in responses]


def begin(world: World, *batches: Any, version: int = 12) -> PendingHandler:
    return world.begin_request(handle, request(*batches), version)


def error_codes(pending: PendingHandler) -> list[ErrorCode]:
    pending.resume()
    assert pending.is_complete
    return codes(partition_responses(pending.response))


# Verifying


@pytest.mark.parametrize("version", range(3, 14))
def test_up_to_version_11_the_partitions_are_verified_and_then_added(
    world: World, coordinator: Coordinator, version: int
) -> None:
    entry = produce(world, of_transaction(b"a"), of_transaction(b"b"), version=version)
    assert codes(entry) == [ErrorCode.NONE] * 2
    partitions = [("orders", 0), ("orders", 1)]
    assert coordinator.asked == [("t", PRODUCER, 0, partitions, version >= 12)]
    assert world.partition("orders").last_stable_offset == 0


def test_an_open_transaction_is_not_verified_again(world: World, coordinator: Coordinator) -> None:
    produce(world, of_transaction(b"a"))
    produce(world, of_transaction(b"b", sequence=1), of_transaction(b"b"))
    produce(world, of_transaction(b"c", sequence=2), of_transaction(b"c", sequence=1))
    assert [partitions for _, _, _, partitions, _ in coordinator.asked] == [
        [("orders", 0)],
        [("orders", 1)],
    ]


def test_the_next_transaction_is_verified(world: World, coordinator: Coordinator) -> None:
    produce(world, of_transaction(b"a"))
    world.end_transaction("orders", producer_id=PRODUCER, epoch=1, committed=True, version=2)
    assert codes(produce(world, of_transaction(b"b", epoch=1))) == [ErrorCode.NONE]
    assert [epoch for _, _, epoch, _, _ in coordinator.asked] == [0, 1]


def test_plain_batches_of_a_transactional_request_need_no_verification(
    world: World, coordinator: Coordinator
) -> None:
    coordinator.code = ErrorCode.INVALID_PRODUCER_EPOCH
    assert codes(produce(world, batch_of(b"a"), of_transaction(b"b"))) == [
        ErrorCode.NONE,
        ErrorCode.INVALID_PRODUCER_EPOCH,
    ]
    assert coordinator.asked[0][3] == [("orders", 1)]


def test_a_request_without_transactional_batches_needs_no_verification(
    world: World, coordinator: Coordinator
) -> None:
    assert codes(produce(world, batch_of(b"a"))) == [ErrorCode.NONE]
    assert coordinator.asked == []


def test_batches_that_cannot_be_appended_are_not_verified(
    world: World, coordinator: Coordinator
) -> None:
    world.create_topic("far", replicas=(1, 2), leader=2)
    garbage = bytearray(of_transaction(b"a"))
    garbage[8:12] = b"\0\0\0\1"
    three = request(garbage, None, b"x" * 100)
    assert codes(partition_responses(world.request(handle, three, 12))) == [
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.INVALID_RECORD,
        ErrorCode.CORRUPT_MESSAGE,
    ]
    for topic, code in (
        ("far", ErrorCode.NOT_LEADER_OR_FOLLOWER),
        ("nowhere", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ):
        elsewhere = request(of_transaction(b"a"), topic=topic)
        assert codes(partition_responses(world.request(handle, elsewhere, 12))) == [code]
    assert coordinator.asked == []


@pytest.mark.parametrize("other", [{"producer_id": 6}, {"epoch": 1}], ids=str)
def test_a_request_with_batches_of_two_producers_is_rejected(
    world: World, coordinator: Coordinator, other: dict[str, int]
) -> None:
    with pytest.raises(KafkaError, match="INVALID_PRODUCER_ID_MAPPING"):
        produce(world, of_transaction(b"a"), of_transaction(b"b", **other))
    assert world.partition("orders").high_watermark == 0


def test_without_verification_only_partitions_to_add_are_sent_to_the_coordinator(
    world: World, coordinator: Coordinator
) -> None:
    world.configure_broker(transaction_partition_verification_enable="false")
    assert codes(produce(world, of_transaction(b"a"), version=11)) == [ErrorCode.NONE]
    assert coordinator.asked == []
    other = {"producer_id": 6}
    assert codes(produce(world, of_transaction(b"a", **other), version=12)) == [ErrorCode.NONE]
    assert len(coordinator.asked) == 1


# Errors of the coordinator


@pytest.mark.parametrize(
    ("code", "version", "expected"),
    [
        (ErrorCode.TRANSACTION_ABORTABLE, 10, ErrorCode.INVALID_TXN_STATE),
        (ErrorCode.TRANSACTION_ABORTABLE, 11, ErrorCode.TRANSACTION_ABORTABLE),
        (ErrorCode.TRANSACTION_ABORTABLE, 12, ErrorCode.TRANSACTION_ABORTABLE),
        (ErrorCode.INVALID_TXN_STATE, 12, ErrorCode.INVALID_TXN_STATE),
        (ErrorCode.PRODUCER_FENCED, 12, ErrorCode.INVALID_PRODUCER_EPOCH),
        (ErrorCode.INVALID_PRODUCER_EPOCH, 12, ErrorCode.INVALID_PRODUCER_EPOCH),
        (ErrorCode.INVALID_PRODUCER_ID_MAPPING, 12, ErrorCode.INVALID_PRODUCER_ID_MAPPING),
        (ErrorCode.NOT_COORDINATOR, 12, ErrorCode.NOT_ENOUGH_REPLICAS),
        (ErrorCode.COORDINATOR_NOT_AVAILABLE, 12, ErrorCode.NOT_ENOUGH_REPLICAS),
        (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, 3, ErrorCode.NOT_ENOUGH_REPLICAS),
        (ErrorCode.NETWORK_EXCEPTION, 11, ErrorCode.NOT_ENOUGH_REPLICAS),
        (ErrorCode.CONCURRENT_TRANSACTIONS, 11, ErrorCode.NOT_ENOUGH_REPLICAS),
    ],
    ids=str,
)
def test_a_coordinators_error_is_converted_to_one_the_producer_expects(
    world: World, coordinator: Coordinator, code: ErrorCode, version: int, expected: ErrorCode
) -> None:
    coordinator.code = code
    (response,) = produce(world, of_transaction(b"a"), version=version)
    assert (response.error_code, response.base_offset) == (expected, -1)
    assert response.log_start_offset == -1
    assert world.partition("orders").high_watermark == 0


def test_a_fenced_producer_starts_no_transaction_after_the_abort(
    world: World, coordinator: Coordinator
) -> None:
    produce(world, of_transaction(b"a"), version=11)
    world.end_transaction("orders", producer_id=PRODUCER, committed=False)
    coordinator.code = ErrorCode.TRANSACTION_ABORTABLE
    late = of_transaction(b"late", sequence=1)
    assert codes(produce(world, late, version=11)) == [ErrorCode.TRANSACTION_ABORTABLE]
    partition = world.partition("orders")
    assert partition.last_stable_offset == partition.high_watermark == 2


@pytest.mark.parametrize("version", [9, 11, 12])
def test_a_fenced_producer_is_rejected_without_verification_and_does_not_block_its_successor(
    world: World, coordinator: Coordinator, version: int
) -> None:
    produce(world, of_transaction(b"a", epoch=1))
    coordinator.asked.clear()
    zombies = of_transaction(b"late", sequence=0, epoch=0), of_transaction(b"b", epoch=0)
    assert codes(produce(world, *zombies, version=version)) == [
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.NONE,
    ]
    assert [partitions for *_, partitions, _ in coordinator.asked] == [[("orders", 1)]]
    assert codes(produce(world, of_transaction(b"b", sequence=1, epoch=1))) == [ErrorCode.NONE]


def test_batches_of_version_12_start_each_transaction_at_sequence_zero(
    world: World, coordinator: Coordinator
) -> None:
    assert codes(produce(world, of_transaction(b"a", sequence=5))) == [
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    ]
    assert codes(produce(world, of_transaction(b"a", sequence=5), version=11)) == [
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    ]
    assert codes(produce(world, of_transaction(b"a"))) == [ErrorCode.NONE]


# Waiting


@on_a_loop
async def test_records_that_wait_for_verification_are_copied_from_their_frame(
    world: World, coordinator: Coordinator
) -> None:
    coordinator.hold()
    frame = bytearray(request(of_transaction(b"a"), batch_of(b"b")).write(12))
    sent_request, _ = ProduceRequest.read(memoryview(frame), 12)
    pending = PendingHandler(handle(sent_request, world.call(12)))
    assert not pending.is_complete
    frame[:] = bytes(len(frame))
    coordinator.answer()
    assert error_codes(pending) == [ErrorCode.NONE] * 2
    assert world.partition("orders").high_watermark == 1


@on_a_loop
async def test_a_produce_request_that_waits_for_verification_is_not_overtaken(
    world: World, coordinator: Coordinator
) -> None:
    coordinator.hold()
    context = world.call(11)
    pending = PendingHandler(handle(request(of_transaction(b"a")), context))
    assert not pending.is_complete
    assert not context.allows_next_produce
    coordinator.answer()
    assert error_codes(pending) == [ErrorCode.NONE]


@on_a_loop
async def test_a_batch_is_rejected_if_its_transaction_ends_during_the_verification(
    world: World, coordinator: Coordinator
) -> None:
    coordinator.hold()
    pending = begin(world, of_transaction(b"a"), version=11)
    world.end_transaction("orders", producer_id=PRODUCER, committed=False)
    coordinator.answer()
    assert error_codes(pending) == [ErrorCode.INVALID_TXN_STATE]
    assert world.partition("orders").last_stable_offset == 1


@on_a_loop
async def test_a_partition_that_changes_its_leader_during_the_verification_is_rejected(
    world: World, coordinator: Coordinator
) -> None:
    coordinator.hold()
    pending = begin(world, of_transaction(b"a"))
    world.lead("orders", leader=2, isr=(2,))
    coordinator.answer()
    assert error_codes(pending) == [ErrorCode.NOT_LEADER_OR_FOLLOWER]


@on_a_loop
async def test_the_append_time_is_the_time_after_the_verification(
    world: World, coordinator: Coordinator
) -> None:
    world.configure("orders", message_timestamp_type="LogAppendTime")
    coordinator.hold()
    pending = begin(world, of_transaction(b"a"))
    world.now_ms += 5_000
    coordinator.answer()
    pending.resume()
    (response,) = partition_responses(pending.response)
    assert response.log_append_time_ms == world.now_ms


@on_a_loop
async def test_from_version_12_on_the_broker_waits_for_the_previous_transaction_to_end(
    world: World, coordinator: Coordinator
) -> None:
    produce(world, of_transaction(b"a"))
    coordinator.code = ErrorCode.CONCURRENT_TRANSACTIONS
    pending = begin(world, of_transaction(b"b", epoch=1))
    assert [delay_ms for delay_ms, _ in world.timer.alarms] == [20]
    world.end_transaction("orders", producer_id=PRODUCER, epoch=1, committed=True, version=2)
    coordinator.code = ErrorCode.NONE
    world.timer.ring()
    assert error_codes(pending) == [ErrorCode.NONE]
    assert len(coordinator.asked) == 3


@on_a_loop
async def test_the_wait_for_the_previous_transaction_is_limited(
    world: World, coordinator: Coordinator
) -> None:
    coordinator.code = ErrorCode.CONCURRENT_TRANSACTIONS
    pending = begin(world, of_transaction(b"a"))
    for _ in range(5):
        assert not pending.is_complete
        world.now_ms += 20
        world.timer.ring()
        world.timer.alarms.clear()
        pending.resume()
    assert error_codes(pending) == [ErrorCode.CONCURRENT_TRANSACTIONS]


@on_a_loop
async def test_acks_all_waits_for_the_replicas_after_the_verification(
    world: World, coordinator: Coordinator
) -> None:
    world.create_topic("kept", replicas=(1, 2))
    coordinator.hold()
    pending = world.begin_request(handle, request(of_transaction(b"a"), topic="kept"), 12)
    coordinator.answer()
    pending.resume()
    assert not pending.is_complete
    world.lead("kept", isr=(1,))
    assert error_codes(pending) == [ErrorCode.NONE]
