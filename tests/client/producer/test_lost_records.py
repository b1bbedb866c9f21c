"""Records that are lost are logged with their number, and what to do."""

import asyncio
import gc
import logging
from collections.abc import Callable

import pytest
from tests.wait import wait_until

from barnabas.aio import Producer as AioProducer
from barnabas.client.errors import KafkaError
from barnabas.client.producer import Producer
from barnabas.testing import Broker

UNREACHABLE = "127.0.0.1:1"
DEADLINE_S = 10.0
TIMED_OUT = (
    "1 record was not delivered: flush() or close() timed out. "
    "Pass a longer timeout, and check what they return."
)


@pytest.fixture
def own(request: pytest.FixtureRequest) -> dict[str, str]:
    """The setting by which the lines of this test are known: other clients may be left."""
    return {"client.id": request.node.name}


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture, own: dict[str, str]) -> Callable[[], list[str]]:
    """Returns the lines about lost records of this test so far, without the client id."""
    caplog.set_level(logging.WARNING, "barnabas.client")
    prefix = f"{own['client.id']}: "
    return lambda: [
        line.removeprefix(prefix)
        for line in caplog.messages
        if line.startswith(prefix) and "brokers are down" not in line
    ]


def test_a_dropped_producer_logs_how_many_records_were_not_delivered(
    own: dict[str, str],
    lines: Callable[[], list[str]],
) -> None:
    producer = Producer({**own, "bootstrap.servers": UNREACHABLE})
    for _ in range(3):
        producer.produce("t", b"lost")
    del producer
    gc.collect()
    wait_until(lambda: bool(lines()), "the loss is logged", DEADLINE_S)
    assert lines() == [
        "3 records were not delivered: the producer ended too early. Call flush() first."
    ]


def test_a_close_that_times_out_logs_the_records_that_are_left(
    own: dict[str, str],
    lines: Callable[[], list[str]],
) -> None:
    producer = Producer({**own, "bootstrap.servers": UNREACHABLE})
    producer.produce("t", b"lost")
    assert not producer.close(0)
    assert lines() == [TIMED_OUT]


def test_a_flush_that_times_out_is_named_as_the_reason(
    own: dict[str, str], lines: Callable[[], list[str]]
) -> None:
    producer = Producer({**own, "bootstrap.servers": UNREACHABLE})
    producer.produce("t", b"lost")
    assert producer.flush(0.01) == 1
    del producer
    gc.collect()
    wait_until(lambda: bool(lines()), "the loss is logged", DEADLINE_S)
    assert lines() == [TIMED_OUT]


def test_an_asyncio_flush_that_times_out_is_named_as_the_reason(
    own: dict[str, str],
    lines: Callable[[], list[str]],
) -> None:
    async def main() -> None:
        producer = AioProducer({**own, "bootstrap.servers": UNREACHABLE})
        await producer.produce("t", b"lost")
        assert await producer.flush(0.01) == 1
        await producer.close(0)

    asyncio.run(main())
    assert lines() == [TIMED_OUT]


def test_nothing_is_logged_after_a_flush(
    broker: Broker, own: dict[str, str], lines: Callable[[], list[str]]
) -> None:
    producer = Producer({**own, "bootstrap.servers": broker.bootstrap_servers})
    producer.produce("t", b"delivered")
    producer.produce("t", b"delivered", on_delivery=lambda *_: None)
    assert producer.flush(DEADLINE_S) == 0
    assert producer.close(DEADLINE_S)
    assert lines() == []


def test_delivered_records_whose_reports_were_not_polled_are_not_lost(broker: Broker) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    producer.produce("t", b"delivered", on_delivery=lambda *_: None)
    reports = producer._reports
    wait_until(lambda: not reports.undelivered_count, "the record is delivered", DEADLINE_S)
    assert len(producer) == 1  # the report waits
    producer.close()


def test_nothing_is_logged_of_purged_records(
    own: dict[str, str], lines: Callable[[], list[str]]
) -> None:
    producer = Producer({**own, "bootstrap.servers": UNREACHABLE})
    producer.produce("t", b"purged")
    producer.produce("t", b"purged", on_delivery=lambda *_: None)
    producer.purge()
    producer.close(0)
    assert lines() == []


def test_a_failed_delivery_without_a_callback_is_logged(
    own: dict[str, str], lines: Callable[[], list[str]]
) -> None:
    producer = Producer({**own, "bootstrap.servers": UNREACHABLE, "message.timeout.ms": 100})
    for _ in range(2):
        producer.produce("t", b"lost")
    assert producer.flush(DEADLINE_S) == 0
    [line] = lines()
    assert "2 records were not delivered to t: no metadata of t: no broker responds" in line
    assert line.endswith("Pass on_delivery to handle such errors.")
    producer.close()


def test_a_failed_delivery_with_a_callback_is_only_reported(
    own: dict[str, str],
    lines: Callable[[], list[str]],
) -> None:
    errors: list[KafkaError] = []
    with Producer({**own, "bootstrap.servers": UNREACHABLE, "message.timeout.ms": 100}) as producer:
        producer.produce("t", b"lost", on_delivery=lambda error, _: errors.append(error))
    assert [error.code() for error in errors] == [KafkaError._MSG_TIMED_OUT]
    assert lines() == []


def test_a_producer_that_is_closed_in_a_transaction_aborts_it_and_says_so(
    broker: Broker, own: dict[str, str], lines: Callable[[], list[str]]
) -> None:
    producer = Producer(
        {**own, "bootstrap.servers": broker.bootstrap_servers, "transactional.id": "forgotten"}
    )
    producer.init_transactions(DEADLINE_S)
    producer.begin_transaction()
    producer.produce("one", b"never committed")
    producer.flush(DEADLINE_S)
    transaction = producer._core._transaction
    producer.close()
    assert transaction is not None
    assert transaction.is_empty
    [line] = lines()
    assert "the transaction of forgotten was not committed" in line
    assert "Call commit_transaction() or abort_transaction() first." in line


def test_a_close_that_cannot_abort_the_transaction_within_its_timeout_says_so() -> None:
    with Broker() as broker:
        servers = {"bootstrap.servers": broker.bootstrap_servers}
        producer = Producer(servers | {"transactional.id": "stranded"})
        producer.init_transactions(DEADLINE_S)
        producer.begin_transaction()
        producer.produce("one", b"never committed")
        producer.flush(DEADLINE_S)
    assert not producer.close(0)


def test_an_asyncio_producer_whose_loop_ends_logs_what_it_did_not_deliver(
    own: dict[str, str],
    lines: Callable[[], list[str]],
) -> None:
    async def produce() -> None:
        producer = AioProducer({**own, "bootstrap.servers": UNREACHABLE})
        await producer.produce("t", b"lost")

    asyncio.run(produce())
    gc.collect()
    [line] = lines()
    assert "1 record was not delivered" in line


def test_a_dropped_asyncio_producer_delivers_while_its_loop_runs(
    broker: Broker, own: dict[str, str], lines: Callable[[], list[str]]
) -> None:
    async def produce() -> bytes | None:
        producer = AioProducer({**own, "bootstrap.servers": broker.bootstrap_servers})
        delivery = await producer.produce("one", b"delivered")
        del producer
        gc.collect()
        return (await delivery).value()

    assert asyncio.run(produce()) == b"delivered"
    gc.collect()
    assert lines() == []


def test_records_that_wait_for_a_topic_that_does_not_exist_are_logged_once(
    own: dict[str, str],
    lines: Callable[[], list[str]],
) -> None:
    with Broker({"auto.create.topics.enable": False}) as broker:
        producer = Producer({**own, "bootstrap.servers": broker.bootstrap_servers})
        producer.produce("absent", b"1")
        wait_until(lambda: bool(lines()), "it is logged", DEADLINE_S)
        producer.produce("absent", b"2")
        producer.purge()
        producer.close()
    [line] = lines()
    assert "topic absent does not exist: its records wait for up to 30 s" in line
