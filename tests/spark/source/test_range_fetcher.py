"""How a task gets its records: past failures that pass, and in few requests."""

import asyncio
import contextlib
import time

import pyarrow as pa
import pytest
from tests.client.scripted import ScriptedBroker, metadata_of, topic_id
from tests.replication.world import batch_of

from barnabas.client.cluster import Deadline, TopicInfo
from barnabas.client.consumer import range_reader
from barnabas.client.consumer.offset_lookup import MAX_UNKNOWN_TOPIC_ATTEMPTS
from barnabas.client.consumer.range_reader import RangeReader
from barnabas.spark.source import range_fetcher
from barnabas.spark.source.connection import SourceError, connect
from barnabas.spark.source.data_loss import DataLossPolicy
from barnabas.spark.source.offsets import EARLIEST, LATEST, OffsetRange
from barnabas.spark.source.task import read
from barnabas.testing import Broker
from barnabas.wire.apis import ApiKey
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from barnabas.wire.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)

DEADLINE_S = 30.0


def numbers(rows) -> list[int]:
    return sorted(int(value) for value in rows.column("value").to_pylist())


@pytest.mark.parametrize("error", ["NOT_LEADER_OR_FOLLOWER", "UNKNOWN_TOPIC_ID"])
def test_a_moved_leader_is_found(error: str, broker: Broker, topic_of, reads) -> None:
    topic = topic_of(10)
    with broker.faults.fail("Fetch", error, times=2):
        assert numbers(reads.batch(topic.name)) == [*range(10)]


def test_a_broken_connection_is_reconnected(broker: Broker, topic_of, reads) -> None:
    topic = topic_of(10)
    with broker.faults.drop("Fetch", times=3):
        assert numbers(reads.batch(topic.name)) == [*range(10)]


def test_a_retriable_error_is_raised_after_the_timeout(broker: Broker, topic_of, reads) -> None:
    topic = topic_of(1, partitions=1)
    patience = {"kafkaConsumer.pollTimeoutMs": 300}
    with (
        broker.faults.fail("Fetch", "LEADER_NOT_AVAILABLE"),
        pytest.raises(SourceError, match=rf"{topic.name} \[0\] could not be read for 300 ms"),
    ):
        reads.batch(topic.name, **patience)


def test_an_authorization_error_is_raised_at_once(broker: Broker, topic_of, reads) -> None:
    topic = topic_of(1, partitions=1)
    with (
        broker.faults.fail("Fetch", "TOPIC_AUTHORIZATION_FAILED"),
        pytest.raises(SourceError, match=rf"{topic.name} \[0\]: .*uthoriz"),
    ):
        reads.batch(topic.name)


def test_many_partitions_need_few_requests(broker: Broker, topic_of, reads) -> None:
    topic = topic_of(200, partitions=100)
    before = broker.faults.request_counts.copy()
    rows = reads.batch(topic.name)
    assert numbers(rows) == [*range(200)]
    asked = broker.faults.request_counts - before
    assert asked["ListOffsets"] <= 2
    assert asked["Fetch"] <= 5


def test_no_more_is_fetched_than_the_buffer_allows(broker: Broker, topic_of, reads) -> None:
    topic = topic_of(2000, partitions=1)
    small = {"kafka.max.partition.fetch.bytes": 200, "kafka.fetch.max.bytes": 200}
    assert numbers(reads.batch(topic.name, **small)) == [*range(2000)]


def test_many_topics_need_few_requests(broker: Broker, topic_of, reads) -> None:
    topics = ",".join(topic_of(1, partitions=1).name for _ in range(20))
    before = broker.faults.request_counts.copy()
    own = {"kafka.client.id": "knows no topic yet"}
    assert reads.batch(topics, **own).num_rows == 20
    assert (broker.faults.request_counts - before)["Metadata"] <= 5


def test_the_metadata_of_a_deleted_topic_is_no_longer_requested(
    broker: Broker, topic_of, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(range_reader, "METADATA_ATTEMPT_MS", 50)
    gone = topic_of(1, partitions=1).name
    client = {"bootstrap.servers": broker.bootstrap_servers, "client.id": "looks for what is gone"}
    broker.delete_topic(gone)
    assert [
        *read([OffsetRange(gone, 0, 0, 1)], client, DataLossPolicy(False, int(DEADLINE_S * 1000)))
    ] == []
    cluster = connect(client).cluster
    assert gone not in cluster._updater._topics


def test_time_without_a_consumer_does_not_count_to_the_timeout(
    broker: Broker, topic_of, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(range_reader, "READ_AHEAD_BYTES", 1)
    topic = topic_of(1, partitions=1)
    topic.add(1)  # in a batch of its own
    client = {"bootstrap.servers": broker.bootstrap_servers, "fetch.max.bytes": "1"}
    patience_s = 0.5
    wanted = OffsetRange(topic.name, 0, 0, 2)
    task = range_fetcher.RangeFetcher(
        connect(client), [wanted], DataLossPolicy(True, int(patience_s * 1000))
    )
    answers = iter(task)
    (first,) = next(answers)
    assert first.fetched.next_offset == 1
    until_s = time.monotonic() + 2 * patience_s
    while time.monotonic() < until_s:  # the consumer is busy
        time.sleep(0.05)
    with broker.faults.fail("Fetch", "NOT_LEADER_OR_FOLLOWER", times=1):
        ((second,),) = answers
    assert second.fetched.next_offset == 2


def partition_data(index: int, **fields: object) -> PartitionData:
    return PartitionData(partition_index=index, high_watermark=2, last_stable_offset=2, **fields)


def fetch_response(*partitions: PartitionData) -> FetchResponse:
    """Of a scripted topic."""
    topic = FetchableTopicResponse(topic="t", topic_id=topic_id("t"), partitions=[*partitions])
    return FetchResponse(responses=[topic])


def read_scripted(count: int, *brokers: ScriptedBroker, **client: str) -> list[int]:
    """The numbers of a topic's first partitions, each of which has two, as brokers tell it."""

    async def batches() -> list[pa.RecordBatch]:
        async with contextlib.AsyncExitStack() as running:
            for broker in brokers:
                await running.enter_async_context(broker)
            servers = {"bootstrap.servers": f"127.0.0.1:{brokers[0].port}"}
            ranges = [OffsetRange("t", index, 0, 2) for index in range(count)]
            task = read(ranges, servers | client, DataLossPolicy(True, int(DEADLINE_S * 1000)))
            return await asyncio.to_thread(list, task)

    return [number for batch in asyncio.run(batches()) for number in numbers(batch)]


@pytest.mark.parametrize("follower_fails", [False, True])
def test_records_are_read_from_the_preferred_replica_of_the_leader(
    follower_fails: bool,
) -> None:
    def lead(request: FetchRequest) -> FetchResponse:
        if request.rack_id:
            return fetch_response(partition_data(0, preferred_read_replica=2))
        return fetch_response(partition_data(0, records=batch_of(b"0", b"1")))

    def follow(request: FetchRequest) -> FetchResponse:
        if follower_fails:  # it has not got as far yet
            return fetch_response(partition_data(0, error_code=ErrorCode.OFFSET_OUT_OF_RANGE))
        return fetch_response(partition_data(0, records=batch_of(b"0", b"1")))

    leader = ScriptedBroker({ApiKey.FETCH: lead}, node_id=1, topics={"t": 1})
    follower = ScriptedBroker({ApiKey.FETCH: follow}, node_id=2)
    for each in (leader, follower):
        each.handlers[ApiKey.METADATA] = lambda request: metadata_of([leader, follower], request)
    assert read_scripted(1, leader, follower, **{"client.rack": "r2"}) == [0, 1]
    assert len(follower.requests_of(ApiKey.FETCH)) == 1
    assert len(leader.requests_of(ApiKey.FETCH)) == 1 + follower_fails


def test_an_offset_that_is_in_range_after_all_is_fetched_again() -> None:
    def fetch(request: FetchRequest) -> FetchResponse:
        if len(broker.requests_of(ApiKey.FETCH)) == 2:
            return fetch_response(partition_data(0, error_code=ErrorCode.OFFSET_OUT_OF_RANGE))
        offset = request.topics[0].partitions[0].fetch_offset
        record = batch_of(b"%d" % offset, base_offset=offset)
        return fetch_response(partition_data(0, records=record))

    def edges(request: ListOffsetsRequest) -> ListOffsetsResponse:
        offset = {EARLIEST: 0, LATEST: 2}[request.topics[0].partitions[0].timestamp]
        edge = ListOffsetsPartitionResponse(partition_index=0, offset=offset)
        return ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name="t", partitions=[edge])])

    broker = ScriptedBroker({ApiKey.FETCH: fetch, ApiKey.LIST_OFFSETS: edges}, topics={"t": 1})
    assert read_scripted(1, broker) == [0, 1]


def test_a_topic_that_is_deleted_while_it_is_read_is_data_loss() -> None:
    def fetch(request: FetchRequest) -> FetchResponse:
        broker.topics.clear()
        left = [each.partition for each in request.topics[0].partitions]
        moved = ErrorCode.NOT_LEADER_OR_FOLLOWER
        return fetch_response(
            *(partition_data(index, error_code=0 if index else moved) for index in left)
        )

    broker = ScriptedBroker({ApiKey.FETCH: fetch}, topics={"t": 2})
    with pytest.raises(SourceError, match=r"t \[\d\] does not exist any more"):
        read_scripted(2, broker)


def test_a_topic_that_reappears_has_all_of_its_attempts_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fetch(request: FetchRequest) -> FetchResponse:
        if len(broker.requests_of(ApiKey.FETCH)) == 1:
            return fetch_response(partition_data(0, error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER))
        return fetch_response(partition_data(0, records=batch_of(b"0", b"1")))

    hidden = iter(2 * [*(MAX_UNKNOWN_TOPIC_ATTEMPTS - 1) * [True], False])
    look = RangeReader._find_topic

    async def looked(
        reader: RangeReader[OffsetRange], name: str, deadline: Deadline
    ) -> TopicInfo | None:
        unknown = TopicInfo(name, error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return unknown if next(hidden, False) else await look(reader, name, deadline)

    monkeypatch.setattr(RangeReader, "_find_topic", looked)
    broker = ScriptedBroker({ApiKey.FETCH: fetch}, topics={"t": 1})
    backoff = {"retry.backoff.ms": "1", "retry.backoff.max.ms": "1"}
    assert read_scripted(1, broker, **backoff) == [0, 1]
