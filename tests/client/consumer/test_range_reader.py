"""The range reader reads ranges to their end, past temporary failures, within its limits."""

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from tests.client.scripted import ScriptedBroker, metadata_of, topic_id
from tests.server.harness import on_a_loop
from tests.wire.records.samples import some_records

from barnabas.client.cluster import ClusterClient
from barnabas.client.consumer import range_reader
from barnabas.client.consumer.range_reader import FetchedRange, RangeReader, RangeReadError
from barnabas.client.settings import ConsumerSettings
from barnabas.wire.apis import ApiKey
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from barnabas.wire.messages.leaders import LeaderIdAndEpoch
from barnabas.wire.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from barnabas.wire.records.build import build_batch


@dataclass(frozen=True)
class Range:
    start: int
    end: int
    partition: int = 0
    topic: str = "t"


@dataclass
class Policy:
    """Notes data loss; raises if `fails`."""

    timeout_ms: int = 30_000
    timeout_setting: str = "poll.timeout.ms"
    fails: bool = False
    losses: list[str] = field(default_factory=list)

    def on_data_loss(self, reason: str) -> None:
        self.losses.append(reason)
        if self.fails:
            raise RangeReadError(reason)


class Log:
    """A partition of batches with one record each, at the offsets from `start` to `end`."""

    def __init__(self, start: int = 0, end: int = 3) -> None:
        self.start, self.end = start, end

    def fetch(self, request: FetchRequest) -> FetchResponse:
        (topic,) = request.topics
        return response(*(self.partition(each) for each in topic.partitions))

    def partition(self, requested: Any) -> PartitionData:
        offset = requested.fetch_offset
        if not self.start <= offset <= self.end:
            return error(requested.partition, ErrorCode.OFFSET_OUT_OF_RANGE)
        data = PartitionData(
            partition_index=requested.partition,
            high_watermark=self.end,
            last_stable_offset=self.end,
        )
        if offset < self.end:
            data.records = memoryview(bytes(build_batch(some_records(1), base_offset=offset)))
        return data

    def list_offsets(self, request: ListOffsetsRequest) -> ListOffsetsResponse:
        (topic,) = request.topics
        (requested,) = topic.partitions
        offset = self.end if requested.timestamp == -1 else self.start
        found = ListOffsetsPartitionResponse(
            partition_index=requested.partition_index, offset=offset
        )
        return ListOffsetsResponse(
            topics=[ListOffsetsTopicResponse(name=topic.name, partitions=[found])]
        )

    def broker(self, **options: Any) -> ScriptedBroker:
        responses = {ApiKey.FETCH: self.fetch, ApiKey.LIST_OFFSETS: self.list_offsets}
        return ScriptedBroker(responses, **{"topics": {"t": 2}} | options)


def response(*partitions: PartitionData) -> FetchResponse:
    topic = FetchableTopicResponse(topic="t", topic_id=topic_id("t"), partitions=[*partitions])
    return FetchResponse(responses=[topic])


def error(partition: int, code: ErrorCode, **fields: Any) -> PartitionData:
    return PartitionData(partition_index=partition, error_code=code, **fields)


def first(
    failure: Callable[[FetchRequest], FetchResponse], then: Callable[[FetchRequest], FetchResponse]
) -> Callable[[FetchRequest], FetchResponse]:
    """Responds once with a failure."""
    left = [failure]
    return lambda request: (left.pop() if left else then)(request)


async def read(
    ranges: list[Range], *brokers: ScriptedBroker, policy: Policy | None = None, **settings: Any
) -> list[tuple[Range, int]]:
    """Returns the ranges and next offsets of all delivered batches."""
    delivered: list[tuple[Range, int]] = []

    def deliver(fetched: list[FetchedRange[Range]]) -> None:
        delivered.extend((each.range, each.fetched.next_offset) for each in fetched)
        size_bytes = sum(len(each.fetched.batches) for each in fetched)
        asyncio.get_running_loop().call_soon(reader.on_consumed, size_bytes)

    async with contextlib.AsyncExitStack() as running:
        for broker in brokers:
            broker.handlers[ApiKey.METADATA] = lambda request: metadata_of(brokers, request)
            await running.enter_async_context(broker)
        endpoints = tuple(broker.endpoint for broker in brokers)
        backoff = {"retry_backoff_ms": 1, "retry_backoff_max_ms": 2}
        chosen = ConsumerSettings(bootstrap_servers=endpoints, **backoff | settings)
        cluster = ClusterClient(chosen)
        running.push_async_callback(cluster.close)
        reader = RangeReader(cluster, chosen, ranges, policy or Policy(), deliver)
        await reader.run()
    return delivered


@on_a_loop
async def test_ranges_of_several_partitions_are_read_to_their_ends() -> None:
    one, two = Range(0, 2), Range(1, 3, partition=1)
    delivered = await read([one, two], Log().broker())
    assert sorted(delivered, key=lambda entry: (entry[0].partition, entry[1])) == [
        (one, 1),
        (one, 2),
        (two, 2),
        (two, 3),
    ]


@on_a_loop
async def test_ranges_of_one_partition_are_read_one_after_the_other() -> None:
    one, two = Range(0, 1), Range(2, 3)
    assert await read([one, two], Log().broker()) == [(one, 1), (two, 3)]


@on_a_loop
async def test_no_more_is_read_ahead_than_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(range_reader, "READ_AHEAD_BYTES", 1)
    assert len(await read([Range(0, 3)], Log().broker())) == 3


@pytest.mark.parametrize("code", [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_TOPIC_ID])
@on_a_loop
async def test_stale_metadata_is_refreshed_and_the_fetch_retried(code: ErrorCode) -> None:
    log = Log()
    broker = log.broker()
    broker.handlers[ApiKey.FETCH] = first(lambda _: response(error(0, code)), log.fetch)
    assert len(await read([Range(0, 3)], broker)) == 3


@on_a_loop
async def test_a_newer_leader_in_the_response_is_read_from() -> None:
    log, named = Log(), LeaderIdAndEpoch(leader_id=2, leader_epoch=7)
    moved = response(error(0, ErrorCode.NOT_LEADER_OR_FOLLOWER, current_leader=named))
    old = ScriptedBroker({ApiKey.FETCH: lambda _: moved}, node_id=1, topics={"t": 1})
    new = ScriptedBroker({ApiKey.FETCH: log.fetch}, node_id=2)
    assert len(await read([Range(0, 3)], old, new)) == 3
    assert len(old.requests_of(ApiKey.FETCH)) == 1


@pytest.mark.parametrize("follower_fails", [False, True])
@on_a_loop
async def test_a_preferred_replica_is_read_from_until_it_fails(follower_fails: bool) -> None:
    log = Log(end=1)

    def lead(request: FetchRequest) -> FetchResponse:
        if request.rack_id:
            return response(PartitionData(partition_index=0, preferred_read_replica=2))
        return log.fetch(request)

    def follow(request: FetchRequest) -> FetchResponse:
        if follower_fails:
            return response(error(0, ErrorCode.OFFSET_OUT_OF_RANGE))
        return log.fetch(request)

    leader = ScriptedBroker({ApiKey.FETCH: lead}, node_id=1, topics={"t": 1})
    follower = ScriptedBroker({ApiKey.FETCH: follow}, node_id=2)
    assert len(await read([Range(0, 1)], leader, follower, client_rack="r2")) == 1
    assert len(follower.requests_of(ApiKey.FETCH)) == 1
    assert len(leader.requests_of(ApiKey.FETCH)) == 1 + follower_fails


@on_a_loop
async def test_records_before_the_log_start_are_data_loss() -> None:
    policy = Policy()
    assert len(await read([Range(0, 3)], Log(start=2).broker(), policy=policy)) == 1
    assert policy.losses == ["t [0] begins at offset 2: those from 0 to 2 are gone."]


@on_a_loop
async def test_a_range_after_the_log_end_is_data_loss() -> None:
    policy = Policy(fails=True)
    with pytest.raises(RangeReadError, match=r"t \[0\] ends at offset 3, before 5"):
        await read([Range(5, 6)], Log().broker(), policy=policy)


@on_a_loop
async def test_an_offset_that_is_in_range_after_all_is_fetched_again() -> None:
    log = Log()
    broker = log.broker()
    wrong = response(error(0, ErrorCode.OFFSET_OUT_OF_RANGE))
    broker.handlers[ApiKey.FETCH] = first(lambda _: wrong, log.fetch)
    assert len(await read([Range(0, 3)], broker)) == 3


@on_a_loop
async def test_an_error_that_a_retry_does_not_fix_is_raised_at_once() -> None:
    denied = response(error(0, ErrorCode.TOPIC_AUTHORIZATION_FAILED))
    broker = ScriptedBroker({ApiKey.FETCH: lambda _: denied}, topics={"t": 1})
    with pytest.raises(RangeReadError, match=r"t \[0\]: .*uthoriz"):
        await read([Range(0, 1)], broker)
    assert len(broker.requests_of(ApiKey.FETCH)) == 1


@on_a_loop
async def test_a_retriable_error_is_raised_after_the_timeout_of_the_policy() -> None:
    moved = response(error(0, ErrorCode.LEADER_NOT_AVAILABLE))
    broker = ScriptedBroker({ApiKey.FETCH: lambda _: moved}, topics={"t": 1})
    with pytest.raises(RangeReadError, match=r"not be read for 50 ms \(poll.timeout.ms\)"):
        await read([Range(0, 1)], broker, policy=Policy(timeout_ms=50))


@on_a_loop
async def test_a_topic_that_was_deleted_is_data_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(range_reader, "METADATA_ATTEMPT_MS", 20)
    policy = Policy()
    assert await read([Range(0, 1)], ScriptedBroker(), policy=policy) == []
    assert policy.losses == ["t [0] does not exist any more."]
