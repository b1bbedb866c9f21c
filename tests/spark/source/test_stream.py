"""What micro-batches read, against a broker, without Spark."""

import math
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from uuid import uuid4

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable

from barnabas import ConsumerGroupTopicPartitions, TopicPartition
from barnabas.admin import AdminClient, NewPartitions
from barnabas.spark.source import stream as stream_module
from barnabas.spark.source.cluster_client import SourceClusterClient as Driver
from barnabas.spark.source.connection import SourceError
from barnabas.spark.source.offsets import Offsets, SourcePartition
from barnabas.testing import Broker

DEADLINE_S = 30.0
EVERYTHING = ReadAllAvailable()


def test_a_stream_continues_from_its_checkpoint(topic_of, reads) -> None:
    topic = topic_of(10)
    assert reads.available(topic.name, startingOffsets="earliest") == [[*range(10)]]
    assert reads.checkpoint == {topic.name: {"0": 4, "1": 3, "2": 3}}
    topic.add(5)
    assert reads.available(topic.name, startingOffsets="earliest") == [[*range(10, 15)]]


def test_a_micro_batch_respects_the_rate_limit(topic_of, reads) -> None:
    topic = topic_of(30)
    batches = reads.available(topic.name, startingOffsets="earliest", maxOffsetsPerTrigger=12)
    assert [len(each) for each in batches] == [12, 12, 6]
    assert sorted(chain(*batches)) == [*range(30)]


def test_read_all_available_ignores_the_rate_limit(topic_of, reads) -> None:
    topic = topic_of(30)
    stream = reads.stream(topic.name, startingOffsets="earliest", maxOffsetsPerTrigger=12)
    assert stream.latestOffset(stream.initialOffset(), EVERYTHING) == {
        topic.name: {"0": 10, "1": 10, "2": 10}
    }


def test_a_stream_waits_for_the_minimum_unless_it_ends(topic_of, reads) -> None:
    topic = topic_of(3)
    options = {"startingOffsets": "earliest", "minOffsetsPerTrigger": 5}
    stream = reads.stream(topic.name, **options)
    limit = stream.getDefaultReadLimit()
    first = stream.latestOffset(stream.initialOffset(), limit)
    topic.add(4)
    assert stream.latestOffset(first, limit) == first
    topic.add(1)
    assert stream.latestOffset(first, limit) != first
    assert reads.available(topic.name, **options) == [[*range(8)]]


def test_new_partitions_and_topics_of_a_pattern_are_found(broker: Broker, topic_of, reads) -> None:
    first = topic_of(4, partitions=1)
    options = {"subscribePattern": f"(more-)?{first.name}", "startingOffsets": "earliest"}
    assert reads.available(**options) == [[0, 1, 2, 3]]
    with AdminClient({"bootstrap.servers": broker.bootstrap_servers}) as admin:
        admin.create_partitions([NewPartitions(first.name, 2)])[first.name].result()
    first.partitions = 2
    first.add(2)
    first.name, first.partitions = f"more-{first.name}", 1
    broker.create_topic(first.name)
    first.add(1)
    assert reads.available(**options) == [[4, 5, 6]]


def test_a_deleted_topic_fails_the_stream_or_is_skipped(broker: Broker, topic_of, reads) -> None:
    kept, gone = topic_of(3), topic_of(2)
    both = f"{kept.name},{gone.name}"
    assert [len(each) for each in reads.available(both, startingOffsets="earliest")] == [5]
    broker.delete_topic(gone.name)
    kept.add(1)
    with pytest.raises(SourceError, match=f"There is no topic '{gone.name}'"):
        reads.available(both)
    assert reads.available(both, failOnDataLoss="false") == [[3]]


def test_a_recreated_topic_is_data_loss_or_read_from_its_start(
    broker: Broker, topic_of, reads
) -> None:
    topic = topic_of(5, partitions=1)
    assert reads.available(topic.name, startingOffsets="earliest") == [[*range(5)]]
    broker.delete_topic(topic.name)
    broker.create_topic(topic.name, partitions=1)
    topic.add(2)
    with pytest.raises(SourceError, match=r"ends at offset 2, although it was read to 5"):
        reads.available(topic.name)
    assert reads.available(topic.name, failOnDataLoss="false") == [[]]
    topic.add(1)
    assert reads.available(topic.name, failOnDataLoss="false") == [[7]]


def test_the_initial_latest_offsets_are_recorded_before_anything_is_read(topic_of, reads) -> None:
    topic = topic_of(3, partitions=1)
    stream = reads.stream(topic.name)
    start = stream.initialOffset()
    topic.add(2)
    assert stream.latestOffset(start, EVERYTHING) == start
    assert stream.latestOffset(start, EVERYTHING) == {topic.name: {"0": 5}}
    again = reads.stream(topic.name)  # after a crash in the first batch, which is run once more
    assert again.partitions(again.initialOffset(), start) == []


@pytest.mark.parametrize("starting", ["earliest", "latest"])
def test_a_repeated_first_batch_ignores_newer_partitions(
    broker: Broker, topic_of, reads, starting: str
) -> None:
    topic = topic_of(3, partitions=1)
    stream = reads.stream(topic.name, startingOffsets=starting)
    start = stream.initialOffset()
    end = stream.latestOffset(start, EVERYTHING)
    tasks = [each.value for each in stream.partitions(start, end)]
    with AdminClient({"bootstrap.servers": broker.bootstrap_servers}) as admin:
        admin.create_partitions([NewPartitions(topic.name, 2)])[topic.name].result()
    again = reads.stream(topic.name, startingOffsets=starting)
    assert [each.value for each in again.partitions(again.initialOffset(), end)] == tasks


def test_a_partition_created_while_an_available_now_stream_starts_is_read(
    broker: Broker, topic_of, reads
) -> None:
    topic = topic_of(3, partitions=1)
    stream = reads.stream(topic.name)
    stream.prepareForTriggerAvailableNow()
    with AdminClient({"bootstrap.servers": broker.bootstrap_servers}) as admin:
        admin.create_partitions([NewPartitions(topic.name, 2)])[topic.name].result()
    start = stream.initialOffset()
    assert stream.latestOffset(start, EVERYTHING) == start
    assert stream.latestOffset(start, EVERYTHING) == start == {topic.name: {"0": 3, "1": 0}}


def test_a_stream_waits_for_new_records(topic_of, reads) -> None:
    topic = topic_of(3, partitions=2)
    too_long_ms = 10 * int(DEADLINE_S * 1000)
    stream = reads.stream(topic.name, startingOffsets="earliest", longPollMs=too_long_ms)
    start = stream.latestOffset(stream.initialOffset(), EVERYTHING)
    stream.commit(start)
    with ThreadPoolExecutor(1) as thread:
        waiting = thread.submit(stream.latestOffset, start, EVERYTHING)
        topic.add(1)
        assert waiting.result(DEADLINE_S) == {topic.name: {"0": 2, "1": 2}}
    assert stream.reportLatestOffset() == {topic.name: {"0": 2, "1": 2}}


def test_a_source_does_not_wait_while_other_sources_have_records(topic_of, reads) -> None:
    topic = topic_of(3, partitions=1)
    stream = reads.stream(topic.name, startingOffsets="earliest", longPollMs=3_600_000)
    start = stream.latestOffset(stream.initialOffset(), EVERYTHING)
    stream.commit(start)
    stream.commit(start)  # a batch in which this source had nothing
    assert stream.latestOffset(start, EVERYTHING) == start


def test_progress_is_committed_as_a_consumer_group(broker: Broker, topic_of, reads) -> None:
    topic = topic_of(5, partitions=2)
    group = f"job-{uuid4().hex[:8]}"
    reads.available(topic.name, startingOffsets="earliest", commitGroupId=group)
    with AdminClient({"bootstrap.servers": broker.bootstrap_servers}) as admin:
        assert committed(admin, group) == {(topic.name, 0): 3, (topic.name, 1): 2}


def committed(admin: AdminClient, group: str) -> dict[tuple[str, int], int]:
    (future,) = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)]).values()
    partitions: list[TopicPartition] = future.result().topic_partitions
    return {(each.topic, each.partition): each.offset for each in partitions}


def test_a_waiting_stream_sends_no_other_requests(
    topic_of, reads, monkeypatch: pytest.MonkeyPatch
) -> None:
    lookups: list[object] = []
    latest = Driver.latest

    def counted_latest(
        driver: Driver, partitions: Iterable[SourcePartition], *, read: Offsets | None
    ) -> dict[SourcePartition, int]:
        lookups.append(partitions)
        return latest(driver, partitions, read=read)

    monkeypatch.setattr(Driver, "latest", counted_latest)
    monkeypatch.setattr(stream_module, "_IDLE_REFRESH_INTERVAL_S", math.inf)
    topic = topic_of(3, partitions=2)
    stream = reads.stream(topic.name, startingOffsets="earliest", longPollMs=20)
    start = stream.latestOffset(stream.initialOffset(), EVERYTHING)
    stream.commit(start)
    count = 0
    while len(lookups) > count:  # until a wait found no records
        count = len(lookups)
        assert stream.latestOffset(start, EVERYTHING) == start
    topic.add(1)
    while (end := stream.latestOffset(start, EVERYTHING)) == start:
        pass
    assert end == stream.reportLatestOffset() == {topic.name: {"0": 2, "1": 2}}
    assert len(lookups) == count
