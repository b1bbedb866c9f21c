"""Metadata is fetched for added topics at once, and again when it changes."""

import asyncio

import pytest
from tests.client.cluster.harness import a_cluster, code_of, soon
from tests.client.expected_errors import async_expect_error
from tests.client.scripted import (
    ScriptedBroker,
    a_partition,
    metadata_of,
)
from tests.server.harness import on_a_loop
from tests.wait import async_wait_until

from barnabas.client.cluster import Deadline
from barnabas.client.errors import KafkaError, KafkaException
from barnabas.wire.apis import ApiKey
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.groups import ListGroupsResponse
from barnabas.wire.messages.metadata import MetadataRequest, MetadataResponse

LIST = {ApiKey.LIST_GROUPS: lambda _: ListGroupsResponse()}


@on_a_loop
async def test_an_added_topic_becomes_known() -> None:
    async with a_cluster(ScriptedBroker(topics={"orders": 2})) as cluster:
        assert cluster.metadata.topics == {}
        topic = await cluster.topic("orders", deadline=soon())
        assert [each.leader for each in topic.partitions] == [1, 1]
        assert cluster.metadata.cluster_id == "castle"


@on_a_loop
async def test_topics_added_in_one_turn_are_in_one_request() -> None:
    broker = ScriptedBroker(topics={"a": 1, "b": 1, "c": 1})
    async with a_cluster(broker) as cluster:
        cluster.add_topics(["a"])
        cluster.add_topics(["b", "c"])
        await async_wait_until(lambda: len(cluster.metadata.topics) == 3)
        assert [len(each.topics) for each in broker.requests_of(ApiKey.METADATA)] == [3]


@on_a_loop
async def test_a_topic_added_during_a_request_is_in_the_next_one() -> None:
    broker = ScriptedBroker(topics={"a": 1, "b": 1})
    async with a_cluster(broker) as cluster:
        gate = asyncio.Event()

        async def late(request: MetadataRequest) -> MetadataResponse:
            await gate.wait()
            return metadata_of([broker], request)

        broker.handlers[ApiKey.METADATA] = late
        cluster.add_topics(["a"])
        await async_wait_until(lambda: broker.requests_of(ApiKey.METADATA))
        cluster.add_topics(["b"])
        gate.set()
        await async_wait_until(lambda: len(cluster.metadata.topics) == 2)


@on_a_loop
async def test_a_topic_that_does_not_exist_yet_is_waited_for() -> None:
    broker = ScriptedBroker()
    async with a_cluster(broker) as cluster:
        waiting = asyncio.ensure_future(cluster.topic("orders", deadline=soon()))
        await async_wait_until(lambda: len(broker.requests_of(ApiKey.METADATA)) > 2)
        broker.topics["orders"] = 1
        assert len((await waiting).partitions) == 1


@on_a_loop
async def test_a_topic_that_never_comes_is_reported_after_the_deadline() -> None:
    async with a_cluster(ScriptedBroker()) as cluster:
        failure = await async_expect_error(
            lambda timeout_s: cluster.topic("orders", deadline=Deadline.after(timeout_s * 1000)),
            "UNKNOWN_TOPIC_OR_PART",
        )
        assert "orders" in failure.args[0].str()
        assert cluster.metadata.topics["orders"].error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@on_a_loop
async def test_a_topic_error_that_is_not_retriable_is_raised_at_once() -> None:
    broker = ScriptedBroker()
    async with a_cluster(broker) as cluster:

        def reject(request: MetadataRequest) -> MetadataResponse:
            response = metadata_of([broker], request)
            response.topics[0].error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            return response

        broker.handlers[ApiKey.METADATA] = reject
        with pytest.raises(KafkaException) as caught:
            await cluster.topic("orders", deadline=soon())
        assert code_of(caught) == KafkaError.TOPIC_AUTHORIZATION_FAILED


@on_a_loop
async def test_metadata_is_fetched_until_every_partition_has_a_leader() -> None:
    broker = ScriptedBroker(topics={"orders": 1})
    async with a_cluster(broker) as cluster:

        def leaderless(request: MetadataRequest) -> MetadataResponse:
            response = metadata_of([broker], request)
            if len(broker.requests_of(ApiKey.METADATA)) < 3:
                response.topics[0].partitions = [a_partition(0, -1)]
            return response

        broker.handlers[ApiKey.METADATA] = leaderless
        cluster.add_topics(["orders"])
        known = cluster
        await async_wait_until(lambda: (p := known.metadata.leader("orders", 0)) and p.leader == 1)


@on_a_loop
async def test_a_refresh_fetches_again_and_notifies_the_listeners() -> None:
    broker = ScriptedBroker(topics={"orders": 1})
    async with a_cluster(broker) as cluster:
        updates: list[int] = []
        cluster.add_listener(
            lambda metadata: updates.append(len(metadata.topics["orders"].partitions))
        )
        await cluster.topic("orders", deadline=soon())
        broker.topics["orders"] = 2
        cluster.refresh()
        cluster.refresh()
        await async_wait_until(lambda: len(updates) == 2)
        assert updates == [1, 2]
        assert len(broker.requests_of(ApiKey.METADATA)) == 2


@on_a_loop
async def test_metadata_is_fetched_again_after_its_maximum_age() -> None:
    broker = ScriptedBroker(topics={"orders": 1})
    async with a_cluster(broker, metadata_max_age_ms=10) as cluster:
        cluster.add_topics(["orders"])
        await async_wait_until(lambda: len(broker.requests_of(ApiKey.METADATA)) > 3)


@on_a_loop
async def test_all_topics_include_those_created_later() -> None:
    broker = ScriptedBroker(topics={"a": 1})
    async with a_cluster(broker, metadata_max_age_ms=10) as cluster:
        cluster.add_all_topics()
        await async_wait_until(lambda: set(cluster.metadata.topics) == {"a"})
        broker.topics["b"] = 1
        await async_wait_until(lambda: set(cluster.metadata.topics) == {"a", "b"})


@on_a_loop
async def test_a_description_is_not_cached() -> None:
    broker = ScriptedBroker(topics={"a": 1, "b": 2})
    async with a_cluster(broker) as cluster:
        everything = await cluster.describe(None, timeout_ms=30_000)
        assert [each.name for each in everything.topics] == ["a", "b"]
        one = await cluster.describe(["b"], timeout_ms=30_000)
        assert len(one.topics[0].partitions) == 2
        assert not broker.requests_of(ApiKey.METADATA)[1].allow_auto_topic_creation
        assert cluster.metadata.topics == {}
        _, _, address = await cluster.describe_with_node(None, timeout_ms=30_000)
        assert address == f"127.0.0.1:{broker.port}"
