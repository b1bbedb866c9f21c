"""The aio producer: deliveries are futures, callbacks run on the loop."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from barnabas.client.errors import KafkaError, KafkaException
from barnabas.client.producer import AioProducer
from barnabas.testing import Broker


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[dict[str, str]]:
    with Broker() as broker:
        broker.create_topic("t", 3)
        yield {"bootstrap.servers": broker.bootstrap_servers}


def test_a_delivery_is_a_future(bootstrap: dict[str, str]) -> None:
    async def main() -> None:
        async with AioProducer(bootstrap) as producer:
            delivery = await producer.produce("t", "value", "key", partition=1)
            message = await asyncio.wait_for(delivery, 20)
            assert (message.partition(), message.value()) == (1, b"value")

    asyncio.run(main())


def test_callbacks_may_be_functions_and_coroutine_functions(bootstrap: dict[str, str]) -> None:
    reports: list[Any] = []

    async def later(error: Any, message: Any) -> None:
        reports.append((error, message.value()))

    async def main() -> None:
        async with AioProducer(bootstrap, on_delivery=later) as producer:
            await producer.produce("t", b"1", partition=0)
            await producer.produce(
                "t",
                b"2",
                partition=0,
                on_delivery=lambda error, m: reports.append((error, m.value())),
            )
            assert await producer.flush(20) == 0
            await asyncio.sleep(0)
        assert sorted(reports) == [(None, b"1"), (None, b"2")]

    asyncio.run(main())


def test_a_full_buffer_makes_produce_wait_and_loses_nothing(bootstrap: dict[str, str]) -> None:
    async def main() -> None:
        settings = {**bootstrap, "queue.buffering.max.messages": 10}
        async with AioProducer(settings) as producer:
            deliveries = [await producer.produce("t", b"%d" % i, partition=0) for i in range(100)]
            messages = await asyncio.wait_for(asyncio.gather(*deliveries), 20)
            assert [message.value() for message in messages] == [b"%d" % i for i in range(100)]

    asyncio.run(main())


def test_a_failed_delivery_raises_when_it_is_awaited() -> None:
    async def main() -> None:
        settings = {"bootstrap.servers": "127.0.0.1:1", "message.timeout.ms": 300}
        async with AioProducer(settings) as producer:
            delivery = await producer.produce("t", b"x")
            with pytest.raises(KafkaException) as failed:
                await asyncio.wait_for(delivery, 20)
            assert failed.value.args[0].code() == KafkaError._MSG_TIMED_OUT

    asyncio.run(main())


def test_transactions_and_rows_work_on_the_loop_too(bootstrap: dict[str, str]) -> None:
    reports: list[tuple[Any, int]] = []

    async def main() -> None:
        async with AioProducer({**bootstrap, "transactional.id": "aio"}) as producer:
            await producer.init_transactions(20)
            await producer.begin_transaction()
            rows = pa.record_batch({"value": [b"x"] * 1000})
            await producer.produce_arrow("t", rows, lambda error, n: reports.append((error, n)))
            await producer.commit_transaction(20)
            await producer.begin_transaction()
            await producer.produce("t", b"x")
            await producer.abort_transaction(20)
        assert {error for error, _ in reports} == {None}
        assert sum(count for _, count in reports) == 1000

    asyncio.run(main())


def test_a_closed_producer_accepts_no_records(bootstrap: dict[str, str]) -> None:
    async def main() -> None:
        producer = AioProducer(bootstrap)
        assert await producer.close(20)
        with pytest.raises(RuntimeError):
            await producer.produce("t", b"x")

    asyncio.run(main())
