"""Fetches of followers, and of consumers that read from the closest replica."""

from typing import Any

import pytest
from tests.replication.world import PendingHandler, World, batch_of, id_of, registration

from barnabas.replication import Partition
from barnabas.server.api import delete_records, fetch, list_offsets, produce
from barnabas.server.fetching.replica_selector import RACK_AWARE_SELECTOR_CLASS
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages import metadata_records as records
from barnabas.wire.messages.alter_partition import ResponsePartitionData
from barnabas.wire.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    PartitionData,
    ReplicaState,
)
from barnabas.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from barnabas.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from barnabas.wire.messages.topics import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)

FOLLOWER = 2
VERSION = 17


@pytest.fixture
def led(world: World) -> World:
    """Broker 1 leads, broker 2 follows and is in sync."""
    world.metadata(registration(FOLLOWER, rack="r2"))
    world.create_topic("orders", 3, replicas=(1, FOLLOWER))
    return world


def request(
    offsets_to_fetch: dict[int, int],
    *,
    replica_id: int = FOLLOWER,
    start_offset: int = 0,
    **fields: Any,
) -> FetchRequest:
    """A fetch of partitions, by partition and offset."""
    return FetchRequest(
        replica_state=ReplicaState(replica_id=replica_id, replica_epoch=5),
        min_bytes=1,
        topics=[
            FetchTopic(
                topic_id=id_of("orders"),
                partitions=[
                    FetchPartition(
                        partition=index,
                        fetch_offset=offset,
                        log_start_offset=start_offset,
                        partition_max_bytes=1 << 20,
                    )
                    for index, offset in offsets_to_fetch.items()
                ],
            )
        ]
        if offsets_to_fetch
        else [],
        **{"max_wait_ms": 500, "session_epoch": -1, **fields},
    )


def begin(world: World, offsets_to_fetch: dict[int, int], **fields: Any) -> PendingHandler:
    return world.begin_request(fetch.handle, request(offsets_to_fetch, **fields), VERSION)


def partition_results(pending: PendingHandler) -> list[PartitionData]:
    pending.resume()
    assert pending.is_complete, "the request waits"
    return [item for topic in pending.response.responses for item in topic.partitions]


def test_an_append_completes_a_followers_fetch_before_it_is_committed(led: World) -> None:
    follower = begin(led, {0: 0})
    consumer = begin(led, {0: 0}, replica_id=-1)
    led.append("orders", b"a")
    (response,) = partition_results(follower)
    assert response.records
    consumer.resume()
    assert not consumer.is_complete


def test_the_followers_next_fetch_completes_delayed_fetches_and_produces(led: World) -> None:
    batch = bytes(batch_of(b"a"))
    data = [PartitionProduceData(index=0, records=batch)]
    topic = TopicProduceData(name="orders", partition_data=data)
    sent_request = ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[topic])
    producer = led.begin_request(produce.handle, sent_request, 12)
    consumer = begin(led, {0: 0}, replica_id=-1)
    begin(led, {0: 1})
    producer.resume()
    (response,) = producer.response.responses[0].partition_responses
    assert response.error_code == ErrorCode.NONE
    (response,) = partition_results(consumer)
    assert response.records


def test_a_follower_receives_the_high_watermark_that_its_own_fetch_advanced(led: World) -> None:
    led.append("orders", b"a")
    (response,) = partition_results(begin(led, {0: 1}, max_wait_ms=0))
    assert response.high_watermark == 1


def test_a_session_returns_the_changed_partition_and_reads_no_other(
    led: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    session_id = open_session(led)
    reads = note_reads(monkeypatch)
    pending = begin(led, {}, session_id=session_id, session_epoch=2)
    assert reads == []
    led.append("orders", b"a", index=1)
    (response,) = partition_results(pending)
    assert (response.partition_index, bool(response.records)) == (1, True)
    assert reads == [1]


def open_session(world: World, replica_id: int = FOLLOWER) -> int:
    """A session of all three partitions, which have been read to their ends."""
    opened = begin(world, dict.fromkeys(range(3), 0), session_epoch=0, replica_id=replica_id)
    world.timer.ring()
    opened.resume()
    session_id: int = opened.response.session_id
    fields = {"session_id": session_id, "session_epoch": 1, "replica_id": replica_id}
    assert partition_results(begin(world, {}, max_wait_ms=0, **fields)) == []
    return session_id


def note_reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The indexes of the partitions that are read for followers from here on."""
    reads: list[int] = []
    read = Partition.fetch_as_follower

    def noted(partition: Partition, *args: Any, **kwargs: Any) -> Any:
        reads.append(partition.index)
        return read(partition, *args, **kwargs)

    monkeypatch.setattr(Partition, "fetch_as_follower", noted)
    return reads


def test_a_new_high_watermark_comes_with_the_next_response_and_completes_no_follower_fetch(
    led: World,
) -> None:
    session_id = open_session(led)
    led.append("orders", b"a")
    partition_results(begin(led, {}, session_id=session_id, session_epoch=2))
    pending = begin(led, {0: 1}, session_id=session_id, session_epoch=3)
    assert led.partition("orders").high_watermark == 1
    pending.resume()
    assert not pending.is_complete
    led.timer.ring()
    (response,) = partition_results(pending)
    assert response.high_watermark == 1


def test_a_closed_session_watches_nothing(led: World) -> None:
    session_id = open_session(led)
    begin(led, {}, session_id=session_id, session_epoch=-1, max_wait_ms=0)
    assert not led.purgatory._watching


def test_a_follower_that_is_not_in_sync_reads_the_partition_with_every_fetch(led: World) -> None:
    led.metadata(
        records.PartitionChangeRecord(topic_id=id_of("orders"), partition_id=0, isr=[1]),
        records.FenceBrokerRecord(id=FOLLOWER, epoch=5),
    )
    session_id = open_session(led)
    assert led.controller_requests == []
    led.metadata(records.UnfenceBrokerRecord(id=FOLLOWER, epoch=5))
    begin(led, {}, session_id=session_id, session_epoch=2, max_wait_ms=0)
    assert len(led.controller_requests) == 1


def test_a_follower_that_the_controller_rejected_joins_with_a_later_fetch(led: World) -> None:
    """Nothing else happens: the partition has no records, and the metadata does not change."""
    led.metadata(records.PartitionChangeRecord(topic_id=id_of("orders"), partition_id=0, isr=[1]))
    session_id = open_session(led)
    assert len(led.controller_requests) == 1
    leader_state = led.partition("orders").leader_state
    assert leader_state is not None
    assert leader_state.pending_isr_change is not None
    leader_state.on_alter_partition_response(
        leader_state.pending_isr_change,
        ResponsePartitionData(error_code=ErrorCode.INELIGIBLE_REPLICA),
        led.now_ms,
    )
    begin(led, {}, session_id=session_id, session_epoch=2, max_wait_ms=0)
    assert leader_state.pending_isr_change is not None


def test_a_throttled_follower_that_is_not_in_sync_receives_nothing_and_waits(led: World) -> None:
    led.configure("orders", leader_replication_throttled_replicas="*")
    led.configure_broker(leader_replication_throttled_rate="1")
    led.partitions.throttle.apply_configs({(4, "")})
    led.metadata(
        records.PartitionChangeRecord(topic_id=id_of("orders"), partition_id=0, isr=[1]),
        records.FenceBrokerRecord(id=FOLLOWER, epoch=5),
    )
    for _ in range(3):
        led.append("orders", b"a" * 1000)
    (response,) = partition_results(begin(led, {0: 0}))
    assert response.records, "the quota is free"
    pending = begin(led, {0: 1})
    assert not pending.is_complete
    led.timer.ring()
    (response,) = partition_results(pending)
    assert not response.records
    assert response.high_watermark == led.partition("orders").high_watermark


# Deleting records


def test_delete_records_responds_when_the_followers_have_deleted_them(led: World) -> None:
    led.append("orders", b"a")
    partition_results(begin(led, {0: 1}, max_wait_ms=0))
    pending = led.begin_request(delete_records.handle, deletion(1), 2)
    assert not pending.is_complete
    begin(led, {0: 1}, start_offset=1)
    assert deleted(pending) == (ErrorCode.NONE, 1)


def test_delete_records_times_out_if_the_followers_do_not_delete_in_time(led: World) -> None:
    led.append("orders", b"a")
    partition_results(begin(led, {0: 1}, max_wait_ms=0))
    pending = led.begin_request(delete_records.handle, deletion(1), 2)
    led.timer.ring()
    assert deleted(pending) == (ErrorCode.REQUEST_TIMED_OUT, 0)


def test_a_delayed_follower_receives_a_new_log_start_offset_at_once(led: World) -> None:
    session_id = open_session(led)
    led.append("orders", b"a")
    partition_results(begin(led, {}, session_id=session_id, session_epoch=2))
    pending = begin(led, {0: 1}, session_id=session_id, session_epoch=3)
    assert not pending.is_complete
    led.begin_request(delete_records.handle, deletion(1), 2)
    (response,) = partition_results(pending)
    assert response.log_start_offset == 1


def deletion(offset: int) -> DeleteRecordsRequest:
    requested = DeleteRecordsPartition(partition_index=0, offset=offset)
    return DeleteRecordsRequest(
        timeout_ms=1000, topics=[DeleteRecordsTopic(name="orders", partitions=[requested])]
    )


def deleted(pending: PendingHandler) -> tuple[int, int]:
    pending.resume()
    (response,) = pending.response.topics[0].partitions
    return response.error_code, response.low_watermark


# Where it is near


def near(world: World, rack: str = "r2", offset: int = 0) -> PartitionData:
    (response,) = partition_results(
        begin(world, {0: offset}, replica_id=-1, rack_id=rack, max_wait_ms=0)
    )
    return response


@pytest.fixture
def spread(new_world: Any) -> World:
    """As `led`, where consumers may read in their own rack."""
    world: World = new_world(replica_selector_class=RACK_AWARE_SELECTOR_CLASS)
    world.metadata(registration(FOLLOWER, rack="r2"))
    world.create_topic("orders", 3, replicas=(1, FOLLOWER))
    world.append("orders", b"a")
    partition_results(begin(world, {0: 1}, max_wait_ms=0))
    return world


def test_a_consumer_is_redirected_to_the_replica_in_its_rack(spread: World) -> None:
    response = near(spread)
    assert (response.preferred_read_replica, response.records) == (FOLLOWER, b"")
    assert response.high_watermark == 1


@pytest.mark.parametrize("rack", ["", "r1", "nowhere"])
def test_a_consumer_of_another_rack_reads_from_the_leader(spread: World, rack: str) -> None:
    response = near(spread, rack)
    assert response.preferred_read_replica == -1
    assert response.records


def test_no_consumer_is_redirected_to_a_replica_that_lacks_the_offset_or_is_not_in_sync(
    spread: World,
) -> None:
    spread.append("orders", b"b")
    assert near(spread, offset=2).preferred_read_replica == -1
    change = records.PartitionChangeRecord(topic_id=id_of("orders"), partition_id=0, isr=[1])
    spread.metadata(change)
    assert near(spread).preferred_read_replica == -1


def test_no_consumer_is_redirected_without_the_rack_aware_selector(led: World) -> None:
    led.append("orders", b"a")
    partition_results(begin(led, {0: 1}, max_wait_ms=0))
    assert near(led).preferred_read_replica == -1


def test_a_follower_serves_consumers_up_to_its_high_watermark(led: World) -> None:
    led.append("orders", b"a")
    partition_results(begin(led, {0: 1}, max_wait_ms=0))
    led.append("orders", b"b")
    led.lead("orders", leader=FOLLOWER)
    (response,) = partition_results(begin(led, {0: 0}, replica_id=-1))
    assert (response.error_code, response.high_watermark) == (ErrorCode.NONE, 1)
    pending = begin(led, {0: 1}, replica_id=-1)
    led.partition("orders").follower.update_offsets(
        leader_high_watermark=2, leader_log_start_offset=0
    )
    (response,) = partition_results(pending)
    assert response.records
    (response,) = partition_results(begin(led, {0: 3}, replica_id=-1))
    assert response.error_code == ErrorCode.OFFSET_OUT_OF_RANGE


# A new leader


@pytest.mark.parametrize(
    ("version", "code"),
    [(5, ErrorCode.OFFSET_NOT_AVAILABLE), (4, ErrorCode.LEADER_NOT_AVAILABLE)],
)
def test_a_new_leader_without_a_high_watermark_returns_offset_not_available(
    led: World, version: int, code: ErrorCode
) -> None:
    led.append("orders", b"a")
    led.lead("orders", leader=FOLLOWER)
    led.lead("orders", leader=1)
    assert latest(led, version) == (code, -1)
    assert latest(led, version, replica_id=FOLLOWER) == (ErrorCode.NONE, 1)
    begin(led, {0: 1})
    assert latest(led, version) == (ErrorCode.NONE, 1)


def latest(world: World, version: int, replica_id: int = -1) -> tuple[int, int]:
    requested = ListOffsetsPartition(partition_index=0, timestamp=-1)
    sent_request = ListOffsetsRequest(
        replica_id=replica_id, topics=[ListOffsetsTopic(name="orders", partitions=[requested])]
    )
    (response,) = world.request(list_offsets.handle, sent_request, version).topics[0].partitions
    return response.error_code, response.offset
