"""The clock of a test broker: work that is due is done when `advance` returns."""

import threading
import time

import pytest
from confluent_kafka import Consumer, ConsumerGroupState, TopicPartition
from confluent_kafka.admin import AdminClient
from tests.testing.clients import (
    DEADLINE_S,
    QUIET,
    consumer,
    poll_until,
    produce,
    producer,
    values,
)

from barnabas.testing import Broker

WEEK_S = 7 * 24 * 3600


def offsets(broker: Broker, topic: str) -> tuple[int, int]:
    client = consumer(broker.bootstrap_servers)
    try:
        return client.get_watermark_offsets(TopicPartition(topic, 0), DEADLINE_S)
    finally:
        client.close()


def test_retention_deletes_old_records() -> None:
    with Broker() as broker:
        broker.create_topic("kept", config={"retention.ms": WEEK_S * 1000})
        produce(broker.bootstrap_servers, "kept", b"old")
        broker.clock.advance(WEEK_S - 3600)
        assert offsets(broker, "kept") == (0, 1)
        broker.clock.advance(2 * 3600)
        assert offsets(broker, "kept") == (1, 1)
        produce(broker.bootstrap_servers, "kept", b"new")
        assert offsets(broker, "kept") == (1, 2)


@pytest.mark.parametrize(
    "settings",
    [
        {"group_protocol": "classic", "heartbeat_interval_ms": 29_000},
        {"group_protocol": "consumer"},
    ],
    ids=["classic", "consumer"],
)
def test_a_member_without_heartbeats_is_removed_after_its_session_timeout(
    settings: dict[str, object],
) -> None:
    with Broker({"group.consumer.heartbeat.interval.ms": 15_000}) as broker:
        broker.create_topic("orders", partitions=2)
        # It lives by a clock of its own, and says nothing for as long as the test takes.
        client = consumer(broker.bootstrap_servers, "silent", **settings)
        client.subscribe(["orders"])
        poll_until(client, lambda: len(client.assignment()) == 2)
        assert members(broker, "silent") == 1
        broker.clock.advance(30)
        assert members(broker, "silent") == 1
        broker.clock.advance(16)
        assert members(broker, "silent") == 0
        client.close()


def members(broker: Broker, group: str) -> int:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers, **QUIET})
    found = admin.describe_consumer_groups([group])[group].result(DEADLINE_S)
    assert found.state in (ConsumerGroupState.STABLE, ConsumerGroupState.EMPTY)
    return len(found.members)


def test_a_transaction_is_aborted_after_its_timeout() -> None:
    with Broker() as broker:
        broker.create_topic("paid")
        client = producer(broker.bootstrap_servers, transactional_id="till")
        client.init_transactions(DEADLINE_S)
        client.begin_transaction()
        client.produce("paid", b"never")
        client.flush(DEADLINE_S)
        produce(broker.bootstrap_servers, "paid", b"after")
        assert stable_end(broker, "paid") == 0
        broker.clock.advance(75)
        assert stable_end(broker, "paid") == 3
        assert values(broker.bootstrap_servers, "paid", 1) == [b"after"]


def stable_end(broker: Broker, topic: str) -> int:
    """Returns the last stable offset."""
    client = consumer(broker.bootstrap_servers, isolation_level="read_committed")
    try:
        return last_offset(client, topic)
    finally:
        client.close()


def last_offset(client: Consumer, topic: str) -> int:
    return client.get_watermark_offsets(TopicPartition(topic, 0), DEADLINE_S)[1]


def test_records_have_the_time_of_the_brokers_clock() -> None:
    with Broker({"log.message.timestamp.type": "LogAppendTime"}) as broker:
        broker.clock.advance(WEEK_S)
        produce(broker.bootstrap_servers, "dated", b"one")
        client = consumer(broker.bootstrap_servers)
        client.assign([TopicPartition("dated", 0, 0)])
        (record,) = client.consume(1, DEADLINE_S)
        client.close()
        assert record.timestamp()[1] / 1000 - time.time() == pytest.approx(WEEK_S, abs=60)


def test_a_frozen_clock_moves_only_by_advance() -> None:
    with Broker() as broker:
        broker.clock.freeze()
        before_s = broker.clock.time()
        produce(broker.bootstrap_servers, "still", b"one")
        assert broker.clock.time() == before_s
        broker.clock.advance(5)
        assert broker.clock.time() == pytest.approx(before_s + 5)
        broker.clock.resume()
        time_passes(broker)


def time_passes(broker: Broker) -> None:
    now_s = broker.clock.time()
    while broker.clock.time() == now_s:
        pass


def test_a_broker_with_a_frozen_clock_can_be_stopped() -> None:
    with Broker() as broker:
        produce(broker.bootstrap_servers, "still", b"one")
        broker.clock.freeze()


def test_brokers_have_separate_clocks() -> None:
    with Broker() as first, Broker() as second:
        first.clock.advance(WEEK_S)
        assert first.clock.time() - second.clock.time() == pytest.approx(WEEK_S, abs=60)


def test_a_restart_does_not_turn_the_clock_back() -> None:
    with Broker() as broker:
        broker.clock.advance(WEEK_S)
        broker.restart()
        broker.stop()
        broker.clock.advance(60)
        broker.start()
        assert broker.clock.time() - time.time() == pytest.approx(WEEK_S + 60, abs=30)


def test_the_broker_stays_registered_after_a_long_advance() -> None:
    with Broker() as broker:
        for seconds in (1, 4, 5, 9, 20, 3600, 52 * WEEK_S):
            broker.clock.advance(seconds)
            broker.create_topic(f"after-{seconds}")
            assert produce(broker.bootstrap_servers, f"after-{seconds}", b"here") == []


def test_the_clock_cannot_go_back() -> None:
    with pytest.raises(ValueError, match="cannot advance the clock by -1 s"):
        Broker().clock.advance(-1)


def test_a_delayed_response_is_sent_when_the_clock_reaches_it() -> None:
    with Broker() as broker:
        fault = broker.faults.delay("Produce", 60)
        client = producer(broker.bootstrap_servers)
        client.produce("late", b"one")
        while not fault.fired:
            client.poll(0.01)
        moving = threading.Thread(target=broker.clock.advance, args=(60,))
        moving.start()
        assert client.flush(DEADLINE_S) == 0
        moving.join()
