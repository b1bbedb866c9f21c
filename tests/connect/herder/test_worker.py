"""A worker with its REST API, on real sockets."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from uuid import uuid4

import pytest
from tests.connect.herder.instances import SOURCE, FakeEngine, Runs
from tests.wait import async_wait_until

from barnabas.admin import AdminClient, NewTopic
from barnabas.cli.operations.connect import ConnectClient
from barnabas.cli.operations.errors import CommandError
from barnabas.client.compacted_topic import TopicError
from barnabas.connect.worker import RunningWorker, serve_worker
from barnabas.connect.worker_config import WorkerConfig
from barnabas.testing import Broker


def properties_of(broker: Broker) -> dict[str, str]:
    group_id = f"w{uuid4().hex}"
    return {
        "bootstrap.servers": broker.bootstrap_servers,
        "group.id": group_id,
        "config.storage.topic": f"{group_id}-configs",
        "offset.storage.topic": f"{group_id}-offsets",
        "offset.storage.partitions": "1",
        "status.storage.topic": f"{group_id}-status",
        "status.storage.partitions": "1",
        "heartbeat.interval.ms": "20",
        "listeners": "http://127.0.0.1:0",
    }


async def serve(
    properties: dict[str, str], scenario: Callable[[RunningWorker], Awaitable[None]]
) -> None:
    create_engine = partial(FakeEngine, "", Runs())
    async with serve_worker(WorkerConfig.parse(properties), create_engine) as worker:
        await scenario(worker)


def test_the_rest_api_is_there_before_the_brokers_are(fresh_kafka_broker: Broker) -> None:
    async def scenario(worker: RunningWorker) -> None:
        client = ConnectClient(worker.url)
        info = await asyncio.to_thread(client.get)
        assert info["version"]
        with pytest.raises(CommandError, match="still starting up"):
            await asyncio.to_thread(client.get, "health")
        fresh_kafka_broker.start()
        await worker.starting
        await async_wait_until(lambda: worker.herder.health[0] == "healthy")
        health = await asyncio.to_thread(client.get, "health")
        assert health["status"] == "healthy"

    properties = properties_of(fresh_kafka_broker)
    fresh_kafka_broker.stop()
    asyncio.run(serve(properties, scenario))


def test_a_request_to_any_worker_reaches_the_leader(kafka_broker: Broker) -> None:
    properties = properties_of(kafka_broker)

    async def scenario(first: RunningWorker) -> None:
        await first.starting
        await async_wait_until(lambda: first.herder.health[0] == "healthy")

        async def with_second(second: RunningWorker) -> None:
            await second.starting
            await async_wait_until(lambda: second.herder.health[0] == "healthy")
            client = ConnectClient(second.url)
            assert second.herder.instance.group.current is not None
            assert not second.herder.instance.group.current.is_leader
            created = await asyncio.to_thread(
                client.send,
                "POST",
                "connectors",
                body={
                    "name": "c",
                    "config": {"connector.class": SOURCE, "file": "f", "topic": "t"},
                },
            )
            assert created["config"]["name"] == "c"
            assert await first.herder.connectors() == ["c"]
            await asyncio.to_thread(client.send, "DELETE", "connectors", "c")
            assert await first.herder.connectors() == []

        await serve(properties, with_second)

    asyncio.run(serve(properties, scenario))


def test_a_topic_that_would_lose_settings_is_an_error(kafka_broker: Broker) -> None:
    properties = properties_of(kafka_broker)
    topic = properties["config.storage.topic"]
    admin = AdminClient({"bootstrap.servers": kafka_broker.bootstrap_servers})
    admin.create_topics([NewTopic(topic, 1)])[topic].result()

    async def scenario(worker: RunningWorker) -> None:
        with pytest.raises(TopicError, match=r"cleanup\.policy=delete and would lose the settings"):
            await worker.failed()

    asyncio.run(serve(properties, scenario))


def test_a_config_topic_with_several_partitions_is_an_error(kafka_broker: Broker) -> None:
    properties = properties_of(kafka_broker)
    topic = properties["config.storage.topic"]
    admin = AdminClient({"bootstrap.servers": kafka_broker.bootstrap_servers})
    config = {"cleanup.policy": "compact"}
    admin.create_topics([NewTopic(topic, 2, config=config)])[topic].result()

    async def scenario(worker: RunningWorker) -> None:
        with pytest.raises(TopicError, match="has 2 partitions"):
            await worker.failed()

    asyncio.run(serve(properties, scenario))


def test_a_client_reports_what_the_worker_says() -> None:
    with pytest.raises(CommandError, match=r"not a URL such as http://localhost:8083"):
        ConnectClient("localhost:8083")
    with pytest.raises(CommandError, match=r"http://127\.0\.0\.1:1: Connection refused\."):
        ConnectClient("http://127.0.0.1:1").get("connectors")
