"""The consumer on the caller's own loop."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from barnabas import OFFSET_BEGINNING, Producer, TopicPartition
from barnabas.aio import Consumer
from barnabas.testing import Broker


@pytest.fixture(scope="module")
def bootstrap() -> Any:
    with Broker() as broker:
        broker.create_topic("t", partitions=2)
        with Producer({"bootstrap.servers": broker.bootstrap_servers}) as producer:
            for index in range(100):
                producer.produce("t", b"%d" % index, partition=index % 2)
            assert producer.flush(30) == 0
        yield broker.bootstrap_servers


def run(
    bootstrap: str, test: Callable[[Consumer], Coroutine[Any, Any, None]], **settings: Any
) -> None:
    async def with_consumer() -> None:
        conf = {"bootstrap.servers": bootstrap, "group.id": "g", "enable.auto.commit": False}
        async with Consumer(conf | settings) as consumer:
            await asyncio.wait_for(test(consumer), 60)

    asyncio.run(with_consumer())


EVERYTHING = [TopicPartition("t", each, OFFSET_BEGINNING) for each in (0, 1)]


def test_messages_come_from_iteration_poll_and_consume(bootstrap: str) -> None:
    async def read(consumer: Consumer) -> None:
        await consumer.assign(EVERYTHING)
        found = []
        async for message in consumer:
            found.append(message)
            if len(found) == 50:
                break
        polled = await consumer.poll(20)
        assert polled is not None
        found += [polled, *await consumer.consume(49, 20)]
        assert sorted(int(each.value()) for each in found) == list(range(100))
        assert await consumer.poll(0) is None
        assert await consumer.consume(5, 0.01) == []
        assert [each.offset for each in await consumer.position(EVERYTHING)] == [50, 50]
        assert set((await consumer.lag()).values()) == {0}

    run(bootstrap, read)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_callbacks_may_be_coroutine_functions(bootstrap: str, protocol: str) -> None:
    events: list[tuple[str, int]] = []

    async def on_assign(consumer: Consumer, partitions: list[TopicPartition]) -> None:
        events.append(("assigned", len(partitions)))
        committed = await consumer.committed(partitions, 20)
        assert [each.offset for each in committed] == [-1001, -1001]

    def on_revoke(consumer: Consumer, partitions: list[TopicPartition]) -> None:
        events.append(("revoked", len(partitions)))

    async def read(consumer: Consumer) -> None:
        await consumer.subscribe(["t"], on_assign=on_assign, on_revoke=on_revoke)
        assert len(await consumer.consume(100, 30)) == 100
        assert await consumer.memberid()
        await consumer.unsubscribe()
        assert await consumer.assignment() == []

    settings = {"group.id": protocol, "group.protocol": protocol, "auto.offset.reset": "earliest"}
    run(bootstrap, read, **settings)
    assert events == [("assigned", 2), ("revoked", 2)]


def test_other_tasks_run_while_a_fast_user_polls(bootstrap: str) -> None:
    async def read(consumer: Consumer) -> None:
        turns = 0

        async def count() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        counting = asyncio.create_task(count())
        for _ in range(10):
            await consumer.assign(EVERYTHING)
            assert len(await consumer.consume(100, 20)) == 100
        counting.cancel()
        assert turns >= 10

    run(bootstrap, read)


def test_consume_arrow_can_be_awaited(bootstrap: str) -> None:
    pytest.importorskip("pyarrow")

    async def read(consumer: Consumer) -> None:
        await consumer.assign(EVERYTHING)
        assert (await consumer.consume_arrow(100, 20)).num_rows == 100

    run(bootstrap, read)


def test_iteration_ends_when_the_consumer_is_closed(bootstrap: str) -> None:
    async def read(consumer: Consumer) -> None:
        await consumer.assign([TopicPartition("t", 0, 49)])
        found = []
        async for message in consumer:
            found.append(message.offset())
            asyncio.get_running_loop().call_soon(asyncio.ensure_future, consumer.close())
        assert found == [49]
        with pytest.raises(RuntimeError, match="Consumer closed"):
            await consumer.poll(0)

    run(bootstrap, read)
