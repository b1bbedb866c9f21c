"""The positions of source connectors, in a topic of a real broker."""

import asyncio
from collections.abc import Awaitable, Callable
from uuid import uuid4

import pytest

from barnabas import Producer
from barnabas.connect.storage.offset_topic import OffsetTopic
from barnabas.testing import Broker

TABLE = {"protocol": "1", "table": "public.t"}
AS_JAVA = b'["jdbc",{"protocol":"1","table":"public.t"}]'
OTHER_ORDER = b'["jdbc",{"table":"public.t","protocol":"1"}]'


@pytest.fixture
def topic() -> str:
    return f"offsets-{uuid4()}"


def produce(broker: Broker, topic: str, *records: tuple[bytes, bytes | None]) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for key, value in records:
        producer.produce(topic, key=key, value=value)
    assert producer.flush(60) == 0


def run(broker: Broker, topic: str, scenario: Callable[[OffsetTopic], Awaitable[None]]) -> None:
    async def started() -> None:
        config = {"bootstrap.servers": broker.bootstrap_servers}
        offsets = OffsetTopic(topic, config, partitions=3)
        try:
            await offsets.start()
            await scenario(offsets)
        finally:
            await offsets.stop()

    asyncio.run(started())


def test_positions_are_read_back_after_a_restart(kafka_broker: Broker, topic: str) -> None:
    partitions = [{"filename": f"/tmp/{n}"} for n in range(10)]

    async def write(offsets: OffsetTopic) -> None:
        assert offsets.offsets("files") == []
        await offsets.write("files", [(each, {"position": 1}) for each in partitions])
        await offsets.write("files", [(partitions[0], {"position": 2}), (partitions[1], None)])
        assert offsets.offset("files", partitions[0]) == {"position": 2}
        assert offsets.offset("files", partitions[1]) is None

    async def read(offsets: OffsetTopic) -> None:
        assert offsets.offset("files", partitions[0]) == {"position": 2}
        assert offsets.offset("files", partitions[1]) is None
        assert offsets.offset("other", partitions[0]) is None
        assert len(offsets.offsets("files")) == 9

    run(kafka_broker, topic, write)
    run(kafka_broker, topic, read)


def test_records_have_the_bytes_that_java_writes(kafka_broker: Broker, topic: str) -> None:
    async def scenario(offsets: OffsetTopic) -> None:
        turned = dict(reversed(TABLE.items()))
        record = offsets.record("jdbc", turned, {"incrementing": 7})
        assert record == (AS_JAVA, b'{"incrementing":7}')
        assert offsets.record("jdbc", turned, None) == (AS_JAVA, None)

    run(kafka_broker, topic, scenario)


def test_an_existing_key_keeps_its_bytes(kafka_broker: Broker, topic: str) -> None:
    async def scenario(offsets: OffsetTopic) -> None:
        produce(kafka_broker, topic, (OTHER_ORDER, b'{"incrementing":7}'))
        await offsets.read_to_end()
        assert offsets.offset("jdbc", TABLE) == {"incrementing": 7}
        assert offsets.record("jdbc", TABLE, {"incrementing": 8})[0] == OTHER_ORDER

    run(kafka_broker, topic, scenario)


def test_of_two_orders_of_a_key_the_newer_position_holds_and_both_are_removed(
    kafka_broker: Broker, topic: str
) -> None:
    async def scenario(offsets: OffsetTopic) -> None:
        produce(kafka_broker, topic, (AS_JAVA, b'{"incrementing":9}'))
        await offsets.read_to_end()
        produce(kafka_broker, topic, (OTHER_ORDER, b'{"incrementing":7}'))
        await offsets.read_to_end()
        assert offsets.offsets("jdbc") == [
            ({"table": "public.t", "protocol": "1"}, {"incrementing": 7})
        ]
        await offsets.write("jdbc", [(TABLE, None)])
        assert offsets.offsets("jdbc") == []

    run(kafka_broker, topic, scenario)


def test_only_committed_transactions_are_read(kafka_broker: Broker, topic: str) -> None:
    async def scenario(offsets: OffsetTopic) -> None:
        config = {"bootstrap.servers": kafka_broker.bootstrap_servers, "transactional.id": topic}
        producer = Producer(config)
        producer.init_transactions()
        for position, end in ((1, producer.commit_transaction), (2, producer.abort_transaction)):
            producer.begin_transaction()
            key, value = offsets.record("files", {"filename": "f"}, {"position": position})
            producer.produce(topic, key=key, value=value)
            producer.flush()
            await offsets.read_to_end()
            end()
            await offsets.read_to_end()
            assert offsets.offset("files", {"filename": "f"}) == {"position": 1}

    run(kafka_broker, topic, scenario)


def test_records_in_other_formats_are_skipped_and_logged(
    kafka_broker: Broker, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(offsets: OffsetTopic) -> None:
        produce(
            kafka_broker,
            topic,
            (b"not JSON", b"{}"),
            (b'["name"]', b"{}"),
            (b'["name",null]', b"{}"),
            (b'["name",{}]', b"7"),
            (b'["name",{"a":1}]', b'{"b":2}'),
        )
        await offsets.read_to_end()
        assert offsets.offsets("name") == [({"a": 1}, {"b": 2})]

    run(kafka_broker, topic, scenario)
    assert len([each for each in caplog.records if "skipped a record" in each.message]) == 4
