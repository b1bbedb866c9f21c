"""Fetch responds as Kafka 4.3 does to the same requests."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.replication.world import PendingHandler, World

from barnabas.replication import Partition
from barnabas.server.api.fetch import handle
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
    ReplicaState,
)
from barnabas.wire.outgoing import Outgoing
from barnabas.wire.records.batch import iterate_batches

NO_DATA = b""


def request(
    offsets_to_fetch: dict[tuple[str, int], int],
    *,
    partition_max_bytes: int = 1 << 20,
    max_wait_ms: int = 500,
    min_bytes: int = 1,
    of_each: dict[str, Any] | None = None,
    **fields: Any,
) -> FetchRequest:
    """A fetch of partitions, by partition and offset."""
    return FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        topics=[
            FetchTopic(
                topic=topic,
                topic_id=topic.encode().ljust(16, b"\0")[:16],
                partitions=[
                    FetchPartition(
                        partition=index,
                        fetch_offset=offset,
                        partition_max_bytes=partition_max_bytes,
                        **(of_each or {}),
                    )
                ],
            )
            for (topic, index), offset in offsets_to_fetch.items()
        ],
        **fields,
    )


def partition_results(response: FetchResponse) -> list[PartitionData]:
    return [result for topic in response.responses for result in topic.partitions]


def fetch(
    world: World, offsets_to_fetch: dict[tuple[str, int], int], version: int = 12, **fields: Any
) -> list[PartitionData]:
    return partition_results(world.request(handle, request(offsets_to_fetch, **fields), version))


def fetch_one(world: World, offset: int, version: int = 12, **fields: Any) -> PartitionData:
    (response,) = fetch(world, {("orders", 0): offset}, version, **fields)
    return response


def size(answer: PartitionData) -> int:
    return len(answer.records or b"")  # type: ignore[arg-type]


def offsets(answer: PartitionData) -> list[int]:
    """The offsets of the batches in a result."""
    records: Any = answer.records
    entry = [] if records == NO_DATA else list(iterate_batches(records.read()))
    return [header.base_offset for _, header in entry]


@pytest.mark.parametrize("version", range(4, 19))
def test_every_version_returns_the_records(world: World, version: int) -> None:
    world.create_topic("orders")
    for value in (b"a", b"b", b"c"):
        world.append("orders", value)
    response = fetch_one(world, 1, version)
    assert (response.error_code, response.high_watermark, response.last_stable_offset) == (0, 3, 3)
    assert (response.log_start_offset, response.preferred_read_replica) == (0, -1)
    assert offsets(response) == [1, 2]


def test_records_are_regions_of_their_file(world: World) -> None:
    world.create_topic("orders")
    world.append("orders", b"a")
    response = world.request(handle, request({("orders", 0): 0}), 12)
    out = Outgoing()
    response.writer(12)(response, out)
    ((_, region),) = out.regions
    assert region.size_bytes == world.partition("orders").log.size_bytes


def test_aborted_transactions_are_null_or_a_list_by_isolation(world: World) -> None:
    world.create_topic("orders")
    world.append("orders", b"a")
    assert fetch_one(world, 0, isolation_level=0).aborted_transactions is None
    assert fetch_one(world, 0, isolation_level=1).aborted_transactions == []


def test_errors_are_returned_at_once_and_by_partition(world: World) -> None:
    world.create_topic("orders")
    world.append("orders", b"a")
    entry = fetch(
        world,
        {("orders", 0): 99, ("orders", 5): 0, ("nowhere", 0): 0},
        max_wait_ms=10_000,
    )
    assert [response.error_code for response in entry] == [
        ErrorCode.OFFSET_OUT_OF_RANGE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]
    for response in entry:
        ends = (response.high_watermark, response.last_stable_offset, response.log_start_offset)
        assert ends == (-1, -1, -1)
        assert response.records == NO_DATA


def test_an_unknown_topic_id(world: World) -> None:
    assert fetch_one(world, 0, 17).error_code == ErrorCode.UNKNOWN_TOPIC_ID


def test_leader_epochs_other_than_the_leaders_are_errors(world: World) -> None:
    world.create_topic("orders")
    world.lead("orders")
    for epoch, code in ((0, ErrorCode.FENCED_LEADER_EPOCH), (2, ErrorCode.UNKNOWN_LEADER_EPOCH)):
        response = fetch_one(world, 0, of_each={"current_leader_epoch": epoch})
        assert response.error_code == code


def test_a_fenced_reader_of_a_recent_version_receives_the_current_leader(world: World) -> None:
    world.create_topic("orders")
    world.lead("orders")
    sent_request = request({("orders", 0): 0}, of_each={"current_leader_epoch": 0})
    response = world.request(handle, sent_request, 16)
    (result,) = partition_results(response)
    assert (result.current_leader.leader_id, result.current_leader.leader_epoch) == (1, 1)
    assert [endpoint.host for endpoint in response.node_endpoints] == ["here"]


def test_a_diverging_reader_receives_the_diverging_epoch_and_no_records(world: World) -> None:
    world.create_topic("orders")
    world.append("orders", b"a")
    response = fetch_one(world, 9, of_each={"last_fetched_epoch": 0}, max_wait_ms=10_000)
    assert response.error_code == ErrorCode.NONE
    assert (response.diverging_epoch.epoch, response.diverging_epoch.end_offset) == (0, 1)
    assert response.records == NO_DATA


@pytest.mark.parametrize("version", [12, 17])
def test_a_fetch_of_a_broker_that_is_no_replica_is_rejected(world: World, version: int) -> None:
    world.create_topic("orders")
    fields: dict[str, Any] = {"replica_id": 5}
    if version >= 15:
        fields = {"replica_state": ReplicaState(replica_id=5, replica_epoch=1)}
    response = fetch_one(world, 0, version, **fields)
    assert response.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


# Limits


def test_the_first_batch_is_returned_however_large_it_is(world: World) -> None:
    world.create_topic("orders", 3)
    for index in (1, 2):
        world.append("orders", b"x" * 1000, index=index)
        world.append("orders", b"y" * 1000, index=index)
    requested = {("orders", index): 0 for index in range(3)}
    for limits in ({"max_bytes": 1}, {"partition_max_bytes": 1}, {"max_bytes": 0}):
        entry = fetch(world, requested, **limits)
        assert [offsets(response) for response in entry] == [[], [0], []]


def test_a_later_partition_whose_first_batch_does_not_fit_is_empty(world: World) -> None:
    world.create_topic("orders", 2)
    for index in (0, 1):
        world.append("orders", b"x" * 1000, index=index)
    small, large = fetch(world, {("orders", 0): 0, ("orders", 1): 0}, max_bytes=1500)
    assert size(small) > 1000
    assert large.records == NO_DATA
    assert large.high_watermark == 1


def test_the_brokers_fetch_max_bytes_limits_a_fetch(new_world: Any) -> None:
    world = new_world(fetch_max_bytes="2048")
    world.create_topic("orders")
    for _ in range(5):
        world.append("orders", b"x" * 1000)
    assert len(offsets(fetch_one(world, 0))) == 1


@settings(max_examples=40)
@given(data=st.data())
def test_every_record_is_fetched_once_in_order_under_any_limits(
    data: st.DataObject, new_world: Any
) -> None:
    world: World = new_world()
    world.create_topic("orders", 3)
    sizes = data.draw(st.lists(st.tuples(st.integers(0, 2), st.integers(1, 3000)), max_size=25))
    for index, value_size in sizes:
        world.append("orders", b"x" * value_size, index=index)
    ends = [world.partition("orders", index).high_watermark for index in range(3)]
    at = [0, 0, 0]
    seen: list[list[int]] = [[], [], []]
    while at != ends:
        max_bytes = data.draw(st.integers(0, 8000), label="max bytes")
        requested = {("orders", index): at[index] for index in range(3)}
        entry = fetch(
            world,
            requested,
            max_bytes=max_bytes,
            partition_max_bytes=data.draw(st.integers(0, 4000), label="partition max bytes"),
            max_wait_ms=0,
        )
        total = sum(map(size, entry))
        assert total > 0
        largest = max(size(response) for response in entry)
        assert total <= max(max_bytes, largest)
        for response in entry:
            fetched = offsets(response)
            seen[response.partition_index] += fetched
            at[response.partition_index] += len(fetched)
    assert seen == [list(range(end)) for end in ends]


# Waiting


def begin(
    world: World, offsets_to_fetch: dict[tuple[str, int], int], *, version: int = 12, **fields: Any
) -> PendingHandler:
    return world.begin_request(handle, request(offsets_to_fetch, **fields), version)


def test_a_reader_at_the_end_waits_for_the_next_record(world: World) -> None:
    world.create_topic("orders")
    pending = begin(world, {("orders", 0): 0})
    assert not pending.is_complete
    world.append("orders", b"a")
    pending.resume()
    (response,) = partition_results(pending.response)
    assert offsets(response) == [0]
    assert len(world.purgatory) == 0


def test_a_fetch_that_times_out_returns_no_records(world: World) -> None:
    world.create_topic("orders")
    pending = begin(world, {("orders", 0): 0})
    world.timer.ring()
    pending.resume()
    (response,) = partition_results(pending.response)
    assert (response.error_code, response.records) == (ErrorCode.NONE, NO_DATA)


def test_a_fetch_without_max_wait_returns_at_once(world: World) -> None:
    world.create_topic("orders")
    assert begin(world, {("orders", 0): 0}, max_wait_ms=0).is_complete
    assert begin(world, {("orders", 0): 0}, max_wait_ms=-5).is_complete
    assert begin(world, {("orders", 0): 0}, min_bytes=0).is_complete
    assert begin(world, {}).is_complete


@settings(max_examples=30)
@given(
    sizes=st.lists(st.tuples(st.integers(0, 1), st.integers(1, 2000)), min_size=1, max_size=10),
    min_bytes=st.integers(1, 6000),
    limit=st.integers(2100, 5000),  # any one batch fits
)
def test_min_bytes_completes_exactly_when_there_is_enough(
    sizes: list[tuple[int, int]], min_bytes: int, limit: int, new_world: Any
) -> None:
    world: World = new_world()
    world.create_topic("orders", 2)
    limits = {"partition_max_bytes": limit, "max_bytes": 1 << 20}
    requested = {("orders", 0): 0, ("orders", 1): 0}
    pending = begin(world, requested, min_bytes=min_bytes, **limits)
    for index, value_size in sizes:
        world.append("orders", b"x" * value_size, index=index)
        logs = [world.partition("orders", index).log for index in range(2)]
        there = sum(min(log.size_bytes, limit) for log in logs)
        pending.resume()
        if there >= min_bytes:
            assert pending.is_complete
            break
        assert not pending.is_complete
    if not pending.is_complete:
        world.timer.ring()
        pending.resume()
    at_once = fetch(world, requested, max_wait_ms=0, **limits)
    assert list(map(offsets, partition_results(pending.response))) == list(map(offsets, at_once))


def test_a_minimum_above_the_maximum_is_not_waited_for(world: World) -> None:
    world.create_topic("orders")
    for _ in range(3):
        world.append("orders", b"x" * 1000)
    for limits in ({"max_bytes": 2500}, {"partition_max_bytes": 2500, "max_bytes": 2500}):
        assert begin(world, {("orders", 0): 0}, min_bytes=100_000, **limits).is_complete
    waits = begin(world, {("orders", 0): 0}, min_bytes=2501, partition_max_bytes=2500)
    assert not waits.is_complete


def test_only_the_changed_partition_is_read_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.create_topic("orders", 20)
    pending = begin(world, {("orders", index): 0 for index in range(20)})
    read: list[int] = []
    fetch_partition = Partition.fetch
    monkeypatch.setattr(
        Partition,
        "fetch",
        lambda partition, *args, **kwargs: (
            read.append(partition.index),
            fetch_partition(partition, *args, **kwargs),
        )[1],
    )
    world.append("orders", b"a", index=13)
    pending.resume()
    assert read == [13]
    assert len(partition_results(pending.response)) == 20


def test_a_delayed_read_committed_fetch_is_not_completed_by_an_open_transaction(
    world: World,
) -> None:
    world.create_topic("orders")
    pending = begin(world, {("orders", 0): 0}, isolation_level=1)
    world.write_in_transaction("orders", b"t")
    pending.resume()
    assert not pending.is_complete
    world.end_transaction("orders", committed=True)
    pending.resume()
    (response,) = partition_results(pending.response)
    assert (response.high_watermark, response.last_stable_offset) == (2, 2)
    assert response.aborted_transactions == []


def test_a_delayed_fetch_of_a_deleted_topic_fails_at_once(world: World) -> None:
    world.create_topic("orders")
    pending = begin(world, {("orders", 0): 0})
    world.delete_topic("orders")
    pending.resume()
    (response,) = partition_results(pending.response)
    assert response.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_delayed_fetch_of_a_partition_with_a_new_leader_fails_at_once(world: World) -> None:
    world.create_topic("orders", replicas=(1, 2))
    knowing = begin(world, {("orders", 0): 0}, of_each={"current_leader_epoch": 0})
    for_leaders_only = begin(world, {("orders", 0): 0}, version=10)
    world.lead("orders", leader=2)
    for pending, code in (
        (knowing, ErrorCode.FENCED_LEADER_EPOCH),
        (for_leaders_only, ErrorCode.NOT_LEADER_OR_FOLLOWER),
    ):
        pending.resume()
        (response,) = partition_results(pending.response)
        assert response.error_code == code


# Sessions


def test_a_session_returns_only_what_changed(world: World) -> None:
    world.create_topic("orders", 3)
    opened = world.request(
        handle,
        request({("orders", i): 0 for i in range(3)}, session_epoch=0, max_wait_ms=0),
        12,
    )
    assert len(partition_results(opened)) == 3
    world.append("orders", b"a", index=1)

    def ask(epoch: int, requested: dict[tuple[str, int], int]) -> list[PartitionData]:
        sent_request = request(
            requested, session_id=opened.session_id, session_epoch=epoch, max_wait_ms=0
        )
        return partition_results(world.request(handle, sent_request, 12))

    (response,) = ask(1, {})
    assert (response.partition_index, offsets(response)) == (1, [0])
    assert ask(2, {("orders", 1): 1}) == []
    world.partition("orders", 1).delete_records(1)
    (response,) = ask(3, {})
    assert response.log_start_offset == 1


def test_a_session_waits_for_partitions_it_did_not_name_again(world: World) -> None:
    world.create_topic("orders", 3)
    opened = world.request(
        handle,
        request({("orders", i): 0 for i in range(3)}, session_epoch=0, max_wait_ms=0),
        12,
    )
    sent_request = request({}, session_id=opened.session_id, session_epoch=1)
    pending = world.begin_request(handle, sent_request, 12)
    assert not pending.is_complete
    world.append("orders", b"a", index=2)
    pending.resume()
    (response,) = partition_results(pending.response)
    assert (response.partition_index, offsets(response)) == (2, [0])


def test_a_session_by_name_continues_with_a_recreated_topic(world: World) -> None:
    world.create_topic("orders")
    world.append("orders", b"a")
    opened = world.request(handle, request({("orders", 0): 1}, session_epoch=0, max_wait_ms=0), 12)
    world.delete_topic("orders")
    world.create_topic("orders", topic_id=b"another-topic-id")
    sent_request = request({}, session_id=opened.session_id, session_epoch=1, max_wait_ms=0)
    (response,) = partition_results(world.request(handle, sent_request, 12))
    assert response.error_code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_an_unknown_session_is_an_error(world: World) -> None:
    response = world.request(handle, request({}, session_id=5, session_epoch=1), 12)
    assert response.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_bytes_out_are_counted_for_their_topic(world: World) -> None:
    world.create_topic("orders")
    world.append("orders", b"a")
    fetch_one(world, 0)
    metrics = world.broker.metrics.topic("orders")
    assert metrics.bytes_out == world.partition("orders").log.size_bytes
