"""Transaction markers: written to partitions led here, confirmed when they are committed."""

from types import SimpleNamespace
from typing import Any

import pytest
from tests.replication.world import World
from tests.server.harness import on_a_loop, turns

from barnabas.coordinator.pending_response import PendingResponse
from barnabas.coordinator.ports import TransactionMarker
from barnabas.replication import Partition
from barnabas.server.api import describe_producers, write_txn_markers
from barnabas.server.transactions.markers import LocalMarkerWriter
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.transaction_descriptions import DescribeProducersRequest, TopicRequest
from barnabas.wire.messages.transaction_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)

PRODUCER = 7
OFFSETS = "__consumer_offsets"
COMMITTED = TransactionMarker(PRODUCER, 0, 3, True, 1)


@pytest.fixture
def participants(world: World) -> LocalMarkerWriter:
    world.create_topic("orders", 2)
    return LocalMarkerWriter(world.broker)


# Participants


def test_a_marker_is_written_to_every_partition_of_its_transaction(
    world: World, participants: LocalMarkerWriter
) -> None:
    world.write_in_transaction("orders", b"a")
    response = participants.write_markers(COMMITTED, [("orders", 0), ("orders", 1)])
    assert response.result() == {("orders", 0): ErrorCode.NONE, ("orders", 1): ErrorCode.NONE}
    assert world.partition("orders", 0).last_stable_offset == 2
    assert world.partition("orders", 1).last_stable_offset == 1


def test_every_partition_has_its_own_result(world: World, participants: LocalMarkerWriter) -> None:
    world.create_topic("far", replicas=(1, 2), leader=2)
    world.create_topic("short", replicas=(1, 2), isr=(1,), min_insync_replicas="2")
    world.create_topic("newer")
    world.write_in_transaction("newer", b"a", epoch=5)
    topic_partitions = [
        ("orders", 0),
        ("orders", 9),
        ("nowhere", 0),
        ("far", 0),
        ("short", 0),
        ("newer", 0),
    ]
    assert list(participants.write_markers(COMMITTED, topic_partitions).result().values()) == [
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.INVALID_PRODUCER_EPOCH,
    ]


def test_an_internal_error_is_returned_and_not_raised(
    world: World, participants: LocalMarkerWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stumble(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(Partition, "end_transaction", stumble)
    response = participants.write_markers(COMMITTED, [("orders", 0)])
    assert response.result() == {("orders", 0): ErrorCode.UNKNOWN_SERVER_ERROR}


@on_a_loop
async def test_markers_wait_for_the_replicas(world: World) -> None:
    world.create_topic("kept", 2, replicas=(1, 2))
    response = LocalMarkerWriter(world.broker).write_markers(COMMITTED, [("kept", 0), ("kept", 1)])
    assert not response.is_done
    world.lead("kept", 0, isr=(1,))
    await turns()
    assert not response.is_done
    world.lead("kept", 1, leader=2)
    await turns()
    assert response.result() == {
        ("kept", 0): ErrorCode.NONE,
        ("kept", 1): ErrorCode.NOT_LEADER_OR_FOLLOWER,
    }


@on_a_loop
async def test_replicas_that_are_too_slow_are_a_timeout(world: World) -> None:
    world.create_topic("kept", replicas=(1, 2))
    response = LocalMarkerWriter(world.broker).write_markers(COMMITTED, [("kept", 0)])
    world.timer.ring()
    await turns()
    assert response.result() == {("kept", 0): ErrorCode.REQUEST_TIMED_OUT}


@pytest.mark.parametrize(
    ("said", "reported"),
    [
        (None, ErrorCode.NONE),
        (ErrorCode.NOT_COORDINATOR, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (ErrorCode.TRANSACTION_COORDINATOR_FENCED, ErrorCode.TRANSACTION_COORDINATOR_FENCED),
    ],
    ids=str,
)
@pytest.mark.parametrize("at_once", [True, False])
def test_markers_of_committed_offsets_go_to_the_group_coordinator(
    world: World, said: ErrorCode | None, reported: ErrorCode, at_once: bool
) -> None:
    world.create_topic(OFFSETS, 3)
    ended: list[tuple[int, TransactionMarker]] = []
    value: PendingResponse[None] = PendingResponse()

    def end_transaction(index: int, marker: TransactionMarker) -> PendingResponse[None]:
        ended.append((index, marker))
        if at_once:
            give()
        return value

    def give() -> None:
        if said is None:
            value.complete(None)
        else:
            value.fail(KafkaError(said, "not now"))

    groups: Any = SimpleNamespace(end_transaction=end_transaction)
    world.broker.groups = groups
    response = LocalMarkerWriter(world.broker).write_markers(
        COMMITTED, [(OFFSETS, 2), (OFFSETS, 3)]
    )
    if not at_once:
        assert not response.is_done
        give()
    assert ended == [(2, COMMITTED)]
    assert response.result() == {
        (OFFSETS, 2): reported,
        (OFFSETS, 3): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }


# WriteTxnMarkers


def marker(
    *partitions: int,
    producer_id: int = PRODUCER,
    epoch: int = 0,
    committed: bool = True,
    topic: str = "orders",
    coordinator_epoch: int = 0,
    version: int = 0,
) -> WritableTxnMarker:
    return WritableTxnMarker(
        producer_id=producer_id,
        producer_epoch=epoch,
        transaction_result=committed,
        topics=[WritableTxnMarkerTopic(name=topic, partition_indexes=list(partitions))],
        coordinator_epoch=coordinator_epoch,
        transaction_version=version,
    )


def write(world: World, *markers: WritableTxnMarker, version: int = 2) -> dict[int, Any]:
    """By producer, its partitions and what came of them."""
    request = WriteTxnMarkersRequest(markers=list(markers))
    response = world.request(write_txn_markers.handle, request, version)
    return {
        item.producer_id: {
            (topic.name, result.partition_index): ErrorCode(result.error_code)
            for topic in item.topics
            for result in topic.partitions
        }
        for item in response.markers
    }


@pytest.fixture
def orders(world: World) -> World:
    world.create_topic("orders", 2)
    return world


@pytest.mark.parametrize("version", [1, 2])
def test_every_version_ends_a_transaction(orders: World, version: int) -> None:
    orders.write_in_transaction("orders", b"a")
    reported = write(orders, marker(0), version=version)
    assert reported == {PRODUCER: {("orders", 0): ErrorCode.NONE}}
    assert orders.partition("orders").last_stable_offset == 2


def test_no_markers_have_no_results(orders: World) -> None:
    assert write(orders) == {}
    assert write(orders, marker()) == {}


def test_the_markers_of_one_producer_have_one_result(orders: World) -> None:
    assert write(orders, marker(0), marker(1, 9), marker(0, producer_id=8)) == {
        PRODUCER: {
            ("orders", 0): ErrorCode.NONE,
            ("orders", 1): ErrorCode.NONE,
            ("orders", 9): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        },
        8: {("orders", 0): ErrorCode.NONE},
    }
    assert orders.partition("orders").high_watermark == 2


@pytest.mark.parametrize("nobody", [{"producer_id": -1}, {"epoch": -1}], ids=str)
def test_a_marker_without_a_producer_is_rejected(orders: World, nobody: dict[str, int]) -> None:
    ((_, reported),) = write(orders, marker(0, **nobody)).items()
    assert reported == {("orders", 0): ErrorCode.INVALID_REQUEST}
    assert orders.partition("orders").high_watermark == 0


def test_a_transaction_of_version_two_ends_with_a_new_epoch(orders: World) -> None:
    orders.write_in_transaction("orders", b"a")
    for same in (marker(0, version=2), marker(0, version=2, committed=False)):
        assert write(orders, same)[PRODUCER]["orders", 0] is ErrorCode.INVALID_PRODUCER_EPOCH
    assert write(orders, marker(0, epoch=1, version=2))[PRODUCER]["orders", 0] is ErrorCode.NONE
    assert write(orders, marker(0, epoch=1, version=2))[PRODUCER]["orders", 0] is ErrorCode.NONE


def test_a_marker_of_a_replaced_coordinator_is_rejected(orders: World) -> None:
    orders.write_in_transaction("orders", b"a")
    write(orders, marker(0, coordinator_epoch=5))
    orders.write_in_transaction("orders", b"b", sequence=1)
    reported = write(orders, marker(0, coordinator_epoch=4))
    assert reported[PRODUCER]["orders", 0] is ErrorCode.TRANSACTION_COORDINATOR_FENCED
    assert orders.partition("orders").last_stable_offset == 2


def test_an_administrator_aborts_a_hanging_transaction_by_its_description(orders: World) -> None:
    orders.append("orders", b"before")
    orders.write_in_transaction("orders", b"a", epoch=4)
    request = DescribeProducersRequest(topics=[TopicRequest(name="orders", partition_indexes=[0])])
    described = orders.request(describe_producers.handle, request, 0)
    (producer,) = described.topics[0].partitions[0].active_producers
    assert producer.current_txn_start_offset == 1
    abort = marker(
        0,
        producer_id=producer.producer_id,
        epoch=producer.producer_epoch,
        coordinator_epoch=producer.coordinator_epoch,
        committed=False,
    )
    reported = write(orders, abort, version=1)
    assert reported == {PRODUCER: {("orders", 0): ErrorCode.NONE}}
    fetched = orders.partition("orders").fetch(0, 1 << 20, isolation=1)
    assert (fetched.last_stable_offset, fetched.aborted_transactions) == (3, [(PRODUCER, 1)])


@on_a_loop
async def test_markers_do_not_wait_for_each_other(world: World) -> None:
    world.create_topic("kept", replicas=(1, 2))
    world.create_topic("orders")
    markers = [marker(0, topic="kept"), marker(0)]
    pending = world.begin_request(
        write_txn_markers.handle, WriteTxnMarkersRequest(markers=markers), 2
    )
    assert not pending.is_complete
    assert world.partition("orders").high_watermark == 1
    world.lead("kept", isr=(1,))
    await turns()
    pending.resume()
    assert pending.is_complete
