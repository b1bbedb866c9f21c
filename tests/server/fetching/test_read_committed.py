"""What read_committed fetches return of open, committed and aborted transactions."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.replication.world import START_MS, PendingHandler, World

from barnabas.server.api import describe_producers, fetch, list_offsets
from barnabas.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic, PartitionData
from barnabas.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from barnabas.wire.messages.transaction_descriptions import (
    DescribeProducersRequest,
    ProducerState,
    TopicRequest,
)
from barnabas.wire.records.batch import iterate_batches
from barnabas.wire.records.control import read_marker
from barnabas.wire.records.read import read_records

COMMITTED = 1
MAX_TIMESTAMP = -3


@pytest.fixture
def orders(world: World) -> World:
    world.create_topic("orders")
    return world


def fetch_request(offset: int, isolation: int = COMMITTED, **fields: Any) -> FetchRequest:
    max_bytes = fields.pop("max_bytes", 1 << 20)
    part = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=max_bytes)
    return FetchRequest(
        **{"max_wait_ms": 500, "min_bytes": 1, **fields},
        isolation_level=isolation,
        topics=[FetchTopic(topic="orders", partitions=[part])],
    )


def read(world: World, offset: int, isolation: int = COMMITTED, **fields: Any) -> PartitionData:
    request = fetch_request(offset, isolation, max_wait_ms=0, **fields)
    return only(world.request(fetch.handle, request, 12))


def only(response: Any) -> PartitionData:
    result: PartitionData = response.responses[0].partitions[0]
    return result


def wait(world: World, offset: int, **fields: Any) -> PendingHandler:
    pending = world.begin_request(fetch.handle, fetch_request(offset, **fields), 12)
    assert not pending.is_complete
    return pending


def batches(answer: PartitionData) -> list[int]:
    records: Any = answer.records
    entry = records.read() if records else b""
    return [header.base_offset for _, header in iterate_batches(entry)]


def aborted(answer: PartitionData) -> list[tuple[int, int]] | None:
    listed = answer.aborted_transactions
    return None if listed is None else [(item.producer_id, item.first_offset) for item in listed]


# Fetch


def test_readers_of_committed_records_stop_before_the_first_open_transaction(
    orders: World,
) -> None:
    orders.append("orders", b"plain")
    orders.write_in_transaction("orders", b"open")
    orders.append("orders", b"after")
    response = read(orders, 0)
    assert batches(response) == [0]
    assert (response.high_watermark, response.last_stable_offset, aborted(response)) == (3, 1, [])
    everything = read(orders, 0, isolation=0)
    assert batches(everything) == [0, 1, 2]
    assert (everything.last_stable_offset, aborted(everything)) == (1, None)


@pytest.mark.parametrize("offset", [1, 2, 3])
def test_a_read_committed_fetch_returns_nothing_beyond_the_last_stable_offset(
    orders: World, offset: int
) -> None:
    orders.append("orders", b"plain")
    orders.write_in_transaction("orders", b"open")
    orders.append("orders", b"after")
    response = read(orders, offset)
    assert (response.error_code, batches(response), aborted(response)) == (0, [], [])


@pytest.mark.parametrize("committed", [True, False])
def test_the_end_of_a_transaction_completes_a_delayed_fetch(orders: World, committed: bool) -> None:
    orders.write_in_transaction("orders", b"t")
    pending = wait(orders, 0)
    orders.end_transaction("orders", committed=committed)
    pending.resume()
    response = only(pending.response)
    assert batches(response) == [0, 1]
    assert aborted(response) == ([] if committed else [(7, 0)])


def test_the_end_of_a_transaction_behind_an_open_one_completes_no_fetch(orders: World) -> None:
    orders.write_in_transaction("orders", b"t", producer_id=7)
    orders.write_in_transaction("orders", b"t", producer_id=8)
    pending = wait(orders, 0)
    orders.end_transaction("orders", producer_id=8, committed=True)
    pending.resume()
    assert not pending.is_complete
    orders.end_transaction("orders", producer_id=7, committed=True)
    pending.resume()
    assert batches(only(pending.response)) == [0, 1, 2, 3]


def test_a_session_receives_the_end_of_a_transaction(orders: World) -> None:
    orders.write_in_transaction("orders", b"t")
    opened = orders.request(fetch.handle, fetch_request(0, session_epoch=0, max_wait_ms=0), 12)
    later = FetchRequest(
        max_wait_ms=500,
        min_bytes=1,
        isolation_level=COMMITTED,
        session_id=opened.session_id,
        session_epoch=1,
    )
    pending = orders.begin_request(fetch.handle, later, 12)
    assert not pending.is_complete
    orders.end_transaction("orders", committed=False)
    pending.resume()
    assert aborted(only(pending.response)) == [(7, 0)]


def test_only_transactions_aborted_within_the_returned_records_are_listed(orders: World) -> None:
    for number, producer_id in enumerate((7, 8, 9)):
        orders.write_in_transaction("orders", b"t", producer_id=producer_id)
        assert (
            orders.end_transaction("orders", producer_id=producer_id, committed=False)
            == 2 * number + 1
        )
    assert aborted(read(orders, 0)) == [(7, 0), (8, 2), (9, 4)]
    assert aborted(read(orders, 0, max_bytes=1)) == [(7, 0)]
    assert aborted(read(orders, 1, max_bytes=1)) == [(7, 0)]
    assert aborted(read(orders, 2)) == [(8, 2), (9, 4)]


# ListOffsets


def offset_at(world: World, timestamp: int, isolation: int) -> int:
    request = ListOffsetsRequest(
        replica_id=-1,
        isolation_level=isolation,
        topics=[
            ListOffsetsTopic(
                name="orders",
                partitions=[ListOffsetsPartition(partition_index=0, timestamp=timestamp)],
            )
        ],
    )
    response = world.request(list_offsets.handle, request, 7)
    offset: int = response.topics[0].partitions[0].offset
    return offset


def test_times_within_an_open_transaction_are_not_found_among_committed_records(
    orders: World,
) -> None:
    orders.append("orders", b"plain")
    orders.now_ms += 1_000
    orders.write_in_transaction("orders", b"open")
    for timestamp in (START_MS + 1, MAX_TIMESTAMP):
        assert offset_at(orders, timestamp, 0) == 1
        assert offset_at(orders, timestamp, COMMITTED) == -1
    orders.end_transaction("orders", committed=True)
    assert offset_at(orders, START_MS + 1, COMMITTED) == 1


# DescribeProducers


def described(world: World) -> list[ProducerState]:
    request = DescribeProducersRequest(topics=[TopicRequest(name="orders", partition_indexes=[0])])
    response = world.request(describe_producers.handle, request, 0)
    entry: list[ProducerState] = response.topics[0].partitions[0].active_producers
    return entry


def test_an_open_transaction_is_described_by_its_first_offset(orders: World) -> None:
    orders.append("orders", b"plain")
    orders.write_in_transaction("orders", b"a", b"b")
    (producer,) = described(orders)
    assert (producer.last_sequence, producer.coordinator_epoch) == (1, -1)
    assert producer.current_txn_start_offset == 1


def test_a_transaction_that_ended_is_described_by_its_coordinator_epoch_and_time(
    orders: World,
) -> None:
    orders.write_in_transaction("orders", b"a")
    orders.now_ms += 1_000
    orders.end_transaction("orders", epoch=1, coordinator_epoch=4, committed=True, version=2)
    (producer,) = described(orders)
    assert (producer.producer_epoch, producer.last_sequence) == (1, -1)
    assert (producer.coordinator_epoch, producer.current_txn_start_offset) == (4, -1)
    assert producer.last_timestamp == START_MS + 1_000


# All of it


class Reader:
    """A consumer of committed records, which skips aborted transactions."""

    def __init__(self) -> None:
        self.offset = 0
        self.values: list[bytes] = []

    def poll(self, world: World, max_bytes: int) -> None:
        response = read(world, self.offset, max_bytes=max_bytes)
        records: Any = response.records
        content = records.read() if records else b""
        listed = sorted(aborted(response) or [], key=lambda item: item[1])
        skipped: set[int] = set()
        for position, header in iterate_batches(content):
            while listed and listed[0][1] <= header.last_offset:
                skipped.add(listed.pop(0)[0])
            if header.is_control:
                marker = read_marker(read_records(content, position)[0])
                if marker is not None and not marker.committed:
                    skipped.discard(header.producer_id)
            elif not (header.is_transactional and header.producer_id in skipped):
                entry = read_records(content, position)
                self.values += [r.value or b"" for r in entry if r.offset >= self.offset]
            self.offset = max(self.offset, header.next_offset)


ACTIONS = st.lists(
    st.tuples(
        st.sampled_from(["plain", "write", "commit", "abort", "poll", "poll a batch", "restart"]),
        st.integers(1, 3),
    ),
    max_size=40,
)


@given(ACTIONS)
@settings(max_examples=60)
def test_a_reader_of_committed_records_sees_all_of_them_in_order_and_no_other(
    new_world: Callable[..., World], actions: list[tuple[str, int]]
) -> None:
    world = new_world()
    world.create_topic("orders", segment_bytes="1048576")
    reader = Reader()
    epochs = dict.fromkeys((1, 2, 3), 0)
    written: dict[int, list[tuple[int, bytes]]] = {}
    visible: list[tuple[int, bytes]] = []
    for number, (action, who) in enumerate(actions):
        value = b"%d" % number
        if action == "plain":
            visible.append((world.append("orders", value), value))
        elif action == "write":
            mine = written.setdefault(who, [])
            offset = world.write_in_transaction(
                "orders", value, producer_id=who, epoch=epochs[who], sequence=len(mine)
            )
            mine.append((offset, value))
        elif action in ("commit", "abort"):
            epochs[who] += 1
            committed = action == "commit"
            world.end_transaction(
                "orders", producer_id=who, epoch=epochs[who], committed=committed, version=2
            )
            ended = written.pop(who, [])
            visible += ended if committed else []
        elif action == "restart":
            world.restart(clean=who > 1)
        else:
            reader.poll(world, max_bytes=1 if action == "poll a batch" else 1 << 20)
    stable = min((mine[0][0] for mine in written.values()), default=1 << 62)
    while True:
        before = reader.offset
        reader.poll(world, max_bytes=1 << 20)
        if reader.offset == before:
            break
    assert reader.values == [value for offset, value in sorted(visible) if offset < stable]
