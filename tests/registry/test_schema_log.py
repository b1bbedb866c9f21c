"""The log's reader and writer, with scripted Kafka clients."""

import asyncio
from collections.abc import Sequence
from typing import Any, Self

import pytest

from barnabas.client import transactional_writer
from barnabas.client._message import Message
from barnabas.client.cluster import ClusterClient
from barnabas.client.errors import KafkaError
from barnabas.client.settings import admin_settings
from barnabas.registry import schema_log as log_module
from barnabas.registry.records import encode_record, noop_record
from barnabas.registry.schema_log import SchemaLog
from barnabas.registry.settings import RegistrySettings

KEY, _ = encode_record(noop_record({}))
SETTINGS = RegistrySettings("127.0.0.1:1")


def at(offset: int) -> Message:
    return Message("_schemas", 0, offset, KEY, timestamp=(1, 0))


def failed(code: int) -> Message:
    return Message("_schemas", 0, error=KafkaError(code))


END = failed(KafkaError._PARTITION_EOF)


class Reader:
    """A consumer that returns the messages of `topic` one by one."""

    topic: asyncio.Queue[Message]

    def __init__(self, conf: dict[str, Any]) -> None: ...

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None: ...

    async def assign(self, partitions: object) -> None: ...

    async def poll(self, timeout: float) -> Message:
        return await self.topic.get()

    async def consume(self, count: int, timeout: float) -> Sequence[Message]:
        return []


class Writer:
    """A producer whose record gets offset 0."""

    def __init__(self, conf: dict[str, Any]) -> None: ...

    async def init_transactions(self, timeout: float) -> None: ...

    async def begin_transaction(self) -> None: ...

    async def commit_transaction(self, timeout: float) -> None: ...

    async def produce(self, topic: str, **record: object) -> "asyncio.Future[Message]":
        delivered = asyncio.get_running_loop().create_future()
        delivered.set_result(at(0))
        return delivered


def test_a_write_to_a_recreated_topic_returns_once_that_topic_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(log_module, "AioConsumer", Reader)
    monkeypatch.setattr(transactional_writer, "AioProducer", Writer)

    async def expected(*messages: Message) -> None:
        for message in messages:
            Reader.topic.put_nowait(message)
        for _ in range(20):  # everything runs on this event loop
            await asyncio.sleep(0)

    async def scenario() -> None:
        Reader.topic = asyncio.Queue()
        log = SchemaLog(SETTINGS, ClusterClient(admin_settings(SETTINGS.kafka_client_config)))
        await asyncio.gather(log._restart_reader(b"one"), expected(at(5), END))
        assert log.applied_offset == 5
        writing = asyncio.create_task(log.become_leader())
        await expected()
        await expected(failed(KafkaError._ALL_BROKERS_DOWN))
        assert not writing.done()
        await asyncio.gather(log._restart_reader(b"another"), expected(at(0), END))
        await writing
        assert log.applied_offset == 0

    asyncio.run(scenario())
