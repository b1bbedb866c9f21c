"""Fetch, as the brokers ask it that follow this one, and consumers that read where it is near."""

from typing import Any

import pytest
from tests.replication.world import Pending, World, batch_of, id_of, registration

from barnabas.replication import Partition
from barnabas.server.api import delete_records, fetch, list_offsets, produce
from barnabas.server.fetching.replica_selector import RACK_AWARE_SELECTOR_CLASS
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages import metadata_records as records
from barnabas.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
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

FOLLOWER = 2
VERSION = 17


@pytest.fixture
def led(world: World) -> World:
    """Broker 1 leads, broker 2 follows and is in sync."""
    world.metadata(registration(FOLLOWER, rack="r2"))
    world.create_topic("orders", 3, replicas=(1, FOLLOWER))
    return world


def request(
    wanted: dict[int, int], *, replica_id: int = FOLLOWER, start_offset: int = 0, **fields: Any
) -> FetchRequest:
    """A fetch of each partition from the offset given with it."""
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
                    for index, offset in wanted.items()
                ],
            )
        ]
        if wanted
        else [],
        **{"max_wait_ms": 500, "session_epoch": -1, **fields},
    )


def begin(world: World, wanted: dict[int, int], **fields: Any) -> Pending:
    return world.begin(fetch.handle, request(wanted, **fields), VERSION)


def answers(pending: Pending) -> list[PartitionData]:
    pending.resume()
    assert pending.is_answered, "the request waits"
    return [each for topic in pending.answer.responses for each in topic.partitions]


def test_an_append_wakes_who_follows_though_it_does_not_count_yet(led: World) -> None:
    follower = begin(led, {0: 0})
    consumer = begin(led, {0: 0}, replica_id=-1)
    led.append("orders", b"a")
    (answer,) = answers(follower)
    assert answer.records
    consumer.resume()
    assert not consumer.is_answered


def test_the_followers_next_fetch_wakes_consumers_and_producers(led: World) -> None:
    batch = bytes(batch_of(b"a"))
    data = [PartitionProduceData(index=0, records=batch)]
    topic = TopicProduceData(name="orders", partition_data=data)
    asked = ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[topic])
    producer = led.begin(produce.handle, asked, 12)
    consumer = begin(led, {0: 0}, replica_id=-1)
    begin(led, {0: 1})
    producer.resume()
    (answer,) = producer.answer.responses[0].partition_responses
    assert answer.error_code == ErrorCode.NONE
    (answer,) = answers(consumer)
    assert answer.records


def test_a_follower_is_told_of_the_high_watermark_its_own_fetch_has_moved(led: World) -> None:
    led.append("orders", b"a")
    (answer,) = answers(begin(led, {0: 1}, max_wait_ms=0))
    assert answer.high_watermark == 1


def test_a_session_hears_of_the_partition_that_has_news_and_reads_no_other(
    led: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    session_id = open_session(led)
    reads = note_reads(monkeypatch)
    pending = begin(led, {}, session_id=session_id, session_epoch=2)
    assert reads == []
    led.append("orders", b"a", index=1)
    (answer,) = answers(pending)
    assert (answer.partition_index, bool(answer.records)) == (1, True)
    assert reads == [1]


def open_session(world: World, replica_id: int = FOLLOWER) -> int:
    """A session of all three partitions, each of which has been read to its end."""
    opened = begin(world, dict.fromkeys(range(3), 0), session_epoch=0, replica_id=replica_id)
    world.timer.ring()
    opened.resume()
    session_id: int = opened.answer.session_id
    fields = {"session_id": session_id, "session_epoch": 1, "replica_id": replica_id}
    assert answers(begin(world, {}, max_wait_ms=0, **fields)) == []
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


def test_what_counts_is_told_with_the_sessions_next_answer_and_wakes_nobody(
    led: World,
) -> None:
    session_id = open_session(led)
    led.append("orders", b"a")
    answers(begin(led, {}, session_id=session_id, session_epoch=2))
    pending = begin(led, {0: 1}, session_id=session_id, session_epoch=3)
    assert led.partition("orders").high_watermark == 1
    pending.resume()
    assert not pending.is_answered
    led.timer.ring()
    (answer,) = answers(pending)
    assert answer.high_watermark == 1


def test_a_closed_session_watches_nothing(led: World) -> None:
    session_id = open_session(led)
    begin(led, {}, session_id=session_id, session_epoch=-1, max_wait_ms=0)
    assert not led.purgatory._watching


def test_a_follower_that_is_not_in_sync_is_looked_at_with_every_fetch(led: World) -> None:
    led.metadata(
        records.PartitionChangeRecord(topic_id=id_of("orders"), partition_id=0, isr=[1]),
        records.FenceBrokerRecord(id=FOLLOWER, epoch=5),
    )
    session_id = open_session(led)
    assert led.asked == []
    led.metadata(records.UnfenceBrokerRecord(id=FOLLOWER, epoch=5))
    begin(led, {}, session_id=session_id, session_epoch=2, max_wait_ms=0)
    assert len(led.asked) == 1


def test_a_throttled_follower_that_is_not_in_sync_gets_nothing_and_waits(led: World) -> None:
    led.configure("orders", leader_replication_throttled_replicas="*")
    led.configure_broker(leader_replication_throttled_rate="1")
    led.partitions.throttle.apply_configs({(4, "")})
    led.metadata(
        records.PartitionChangeRecord(topic_id=id_of("orders"), partition_id=0, isr=[1]),
        records.FenceBrokerRecord(id=FOLLOWER, epoch=5),
    )
    for _ in range(3):
        led.append("orders", b"a" * 1000)
    (answer,) = answers(begin(led, {0: 0}))
    assert answer.records, "the quota is free"
    pending = begin(led, {0: 1})
    assert not pending.is_answered
    led.timer.ring()
    (answer,) = answers(pending)
    assert not answer.records
    assert answer.high_watermark == led.partition("orders").high_watermark


# Deleting records


def test_deleted_records_are_gone_when_the_followers_have_let_go_of_them(led: World) -> None:
    led.append("orders", b"a")
    answers(begin(led, {0: 1}, max_wait_ms=0))
    pending = led.begin(delete_records.handle, deletion(1), 2)
    assert not pending.is_answered
    begin(led, {0: 1}, start_offset=1)
    assert deleted(pending) == (ErrorCode.NONE, 1)


def test_followers_that_do_not_let_go_in_time_are_a_timeout(led: World) -> None:
    led.append("orders", b"a")
    answers(begin(led, {0: 1}, max_wait_ms=0))
    pending = led.begin(delete_records.handle, deletion(1), 2)
    led.timer.ring()
    assert deleted(pending) == (ErrorCode.REQUEST_TIMED_OUT, 0)


def test_a_follower_that_waits_is_told_at_once_where_the_log_begins(led: World) -> None:
    session_id = open_session(led)
    led.append("orders", b"a")
    answers(begin(led, {}, session_id=session_id, session_epoch=2))
    pending = begin(led, {0: 1}, session_id=session_id, session_epoch=3)
    assert not pending.is_answered
    led.begin(delete_records.handle, deletion(1), 2)
    (answer,) = answers(pending)
    assert answer.log_start_offset == 1


def deletion(offset: int) -> DeleteRecordsRequest:
    wanted = DeleteRecordsPartition(partition_index=0, offset=offset)
    return DeleteRecordsRequest(
        timeout_ms=1000, topics=[DeleteRecordsTopic(name="orders", partitions=[wanted])]
    )


def deleted(pending: Pending) -> tuple[int, int]:
    pending.resume()
    (answer,) = pending.answer.topics[0].partitions
    return answer.error_code, answer.low_watermark


# Where it is near


def near(world: World, rack: str = "r2", offset: int = 0) -> PartitionData:
    (answer,) = answers(begin(world, {0: offset}, replica_id=-1, rack_id=rack, max_wait_ms=0))
    return answer


@pytest.fixture
def spread(new_world: Any) -> World:
    """As `led`, where consumers may read in their own rack."""
    world: World = new_world(replica_selector_class=RACK_AWARE_SELECTOR_CLASS)
    world.metadata(registration(FOLLOWER, rack="r2"))
    world.create_topic("orders", 3, replicas=(1, FOLLOWER))
    world.append("orders", b"a")
    answers(begin(world, {0: 1}, max_wait_ms=0))
    return world


def test_a_consumer_is_sent_to_the_replica_in_its_rack(spread: World) -> None:
    answer = near(spread)
    assert (answer.preferred_read_replica, answer.records) == (FOLLOWER, b"")
    assert answer.high_watermark == 1


@pytest.mark.parametrize("rack", ["", "r1", "nowhere"])
def test_a_consumer_of_another_rack_reads_from_the_leader(spread: World, rack: str) -> None:
    answer = near(spread, rack)
    assert answer.preferred_read_replica == -1
    assert answer.records


def test_nobody_is_sent_to_a_replica_that_lacks_the_offset_or_is_not_in_sync(
    spread: World,
) -> None:
    spread.append("orders", b"b")
    assert near(spread, offset=2).preferred_read_replica == -1
    change = records.PartitionChangeRecord(topic_id=id_of("orders"), partition_id=0, isr=[1])
    spread.metadata(change)
    assert near(spread).preferred_read_replica == -1


def test_nobody_is_sent_away_unless_the_settings_say_so(led: World) -> None:
    led.append("orders", b"a")
    answers(begin(led, {0: 1}, max_wait_ms=0))
    assert near(led).preferred_read_replica == -1


def test_a_follower_serves_consumers_what_it_knows_to_count(led: World) -> None:
    led.append("orders", b"a")
    answers(begin(led, {0: 1}, max_wait_ms=0))
    led.append("orders", b"b")
    led.lead("orders", leader=FOLLOWER)
    (answer,) = answers(begin(led, {0: 0}, replica_id=-1))
    assert (answer.error_code, answer.high_watermark) == (ErrorCode.NONE, 1)
    waiting = begin(led, {0: 1}, replica_id=-1)
    led.partition("orders").follower.update_offsets(
        leader_high_watermark=2, leader_log_start_offset=0
    )
    (answer,) = answers(waiting)
    assert answer.records
    (answer,) = answers(begin(led, {0: 3}, replica_id=-1))
    assert answer.error_code == ErrorCode.OFFSET_OUT_OF_RANGE


# A new leader


@pytest.mark.parametrize(
    ("version", "code"),
    [(5, ErrorCode.OFFSET_NOT_AVAILABLE), (4, ErrorCode.LEADER_NOT_AVAILABLE)],
)
def test_a_new_leader_that_cannot_tell_what_counts_says_so(
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
    wanted = ListOffsetsPartition(partition_index=0, timestamp=-1)
    asked = ListOffsetsRequest(
        replica_id=replica_id, topics=[ListOffsetsTopic(name="orders", partitions=[wanted])]
    )
    (answer,) = world.ask(list_offsets.handle, asked, version).topics[0].partitions
    return answer.error_code, answer.offset
