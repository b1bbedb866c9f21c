"""How clients end: closed, forgotten, forked, interrupted, or with the process."""

import gc
import os
import re
import signal
import subprocess
import sys
import textwrap
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any

import pytest
from tests.client.conftest import Threads
from tests.wait import wait_until

from barnabas import Consumer, KafkaError, Producer, TopicPartition
from barnabas.testing import Broker

NOBODY = {"bootstrap.servers": "127.0.0.1:1"}
DEADLINE_S = 30.0


def settings(broker: Broker, **more: Any) -> dict[str, Any]:
    return {"bootstrap.servers": broker.bootstrap_servers, **more}


def is_gone(known: weakref.ref[Any]) -> bool:
    gc.collect()
    return known() is None


def test_closed_clients_leave_no_resources(broker: Broker) -> None:
    """In a process of their own, where all threads and files are theirs."""
    printed = run(
        """
        import threading
        from pathlib import Path

        def live():
            with Producer(S) as producer:
                producer.produce("short", b"x")
            Consumer(S, **{"group.id": "g"}).close()

        def open_files():
            return sum(1 for _ in Path("/proc/self/fd").iterdir())

        live()
        before = open_files(), threading.active_count()
        for _ in range(50):
            live()
        print((open_files(), threading.active_count()) == before)
        """,
        broker,
    )
    assert printed == "True\n"


def test_an_unreferenced_producer_is_closed(broker: Broker, threads: Threads) -> None:
    producer = Producer(settings(broker), error_cb=lambda _: None)
    producer.produce("forgotten", b"x", on_delivery=lambda *_: None)
    assert producer.flush(DEADLINE_S) == 0
    known = weakref.ref(producer)
    del producer
    wait_until(lambda: is_gone(known), "somebody holds it")
    wait_until(threads.have_ended, "its thread stays")


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
@pytest.mark.parametrize("polls", [0, 1, 5])
def test_an_unreferenced_consumer_leaves_its_group(
    broker: Broker, threads: Threads, protocol: str, polls: int
) -> None:
    topic = f"dropped-{protocol}-{polls}"
    broker.create_topic(topic)
    with Producer(settings(broker)) as producer:
        producer.produce(topic, b"1")
        producer.produce(topic, b"2")

    def a_consumer() -> Consumer:
        names = {"group.id": topic, "group.protocol": protocol, "auto.offset.reset": "earliest"}
        consumer = Consumer(settings(broker), **names)
        consumer.subscribe([topic], on_assign=lambda *_: None)
        return consumer

    consumer = a_consumer()
    before = broker.requests
    seen = sum(consumer.poll(0.2) is not None for _ in range(polls))
    if not polls:  # it is assigned something, which nobody asks for
        joined = {"SyncGroup", "ConsumerGroupHeartbeat"}
        wait_until(lambda: bool(joined & (broker.requests - before).keys()), "it does not join")
    known = weakref.ref(consumer)
    del consumer
    wait_until(lambda: is_gone(known), "somebody holds it")
    wait_until(threads.have_ended, "its thread stays")
    with Producer(settings(broker)) as producer:
        producer.produce(topic, b"3")
    with a_consumer() as another:
        message = another.poll(DEADLINE_S)
        assert message is not None
        assert message.value() == (b"3" if seen == 2 else b"%d" % (seen + 1))


def test_a_child_process_has_clients_of_its_own(broker: Broker) -> None:
    printed = run(
        """
        import os
        producer, consumer = Producer(S), Consumer(S, **{"group.id": "g"})
        producer.produce("forked", b"parent")
        producer.flush(30)
        if not os.fork():
            for use in (
                lambda: producer.produce("forked", b"x"),
                lambda: producer.flush(1),
                lambda: producer.list_topics(timeout=1),
                lambda: consumer.poll(1),
                lambda: consumer.subscribe(["forked"]),
            ):
                try:
                    use()
                except KafkaException as error:
                    print("before this process was forked" in str(error))
            producer.close()
            consumer.close()
            with Producer(S) as own:
                own.produce("forked", b"child")
            os._exit(0)
        print(os.wait()[1])
        producer.produce("forked", b"parent again")
        print(producer.flush(30))
        """,
        broker,
    )
    assert printed.split() == ["True"] * 5 + ["0", "0"]


@pytest.mark.parametrize("servers", ["the broker's", "127.0.0.1:1"])
def test_a_process_ends_whatever_its_clients_are_doing(broker: Broker, servers: str) -> None:
    address = broker.bootstrap_servers if servers == "the broker's" else servers
    printed = run(
        """
        from barnabas.admin import AdminClient
        admin = AdminClient(S, error_cb=lambda _: None)
        producer = Producer(S, on_delivery=lambda *_: None, error_cb=lambda _: None)
        consumer = Consumer(
            S, error_cb=lambda _: None, **{"group.id": "ends", "auto.offset.reset": "earliest"}
        )
        consumer.subscribe(["ended"])
        producer.produce("ended", b"1")
        consumer.poll(0.1)
        admin.describe_cluster()
        producer.produce("ended", b"2")
        print("end")
        """,
        broker,
        address,
        logs=r"(barnabas: \d records? \w+ not delivered: .*\n)?",
    )
    assert printed == "end\n"


@pytest.mark.parametrize(
    "call",
    [
        lambda producer, _: producer.poll(),
        lambda producer, _: (producer.produce("t", b""), producer.flush()),
        lambda producer, _: producer.list_topics(),
        lambda _, consumer: consumer.poll(),
        lambda _, consumer: consumer.consume(5),
        lambda _, consumer: consumer.committed([TopicPartition("t", 0)]),
        lambda _, consumer: consumer.commit(
            offsets=[TopicPartition("t", 0, 1)], asynchronous=False
        ),
    ],
    ids=["poll", "flush", "list_topics", "consumer.poll", "consume", "committed", "commit"],
)
def test_ctrl_c_ends_every_wait(call: Callable[[Producer, Consumer], object]) -> None:
    producer, consumer = Producer(NOBODY), Consumer(NOBODY, **{"group.id": "g"})
    consumer.subscribe(["t"])
    interrupt = threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT))

    def interrupted() -> None:
        interrupt.start()
        call(producer, consumer)

    try:
        with pytest.raises(KeyboardInterrupt):
            interrupted()
    finally:
        interrupt.join()
        consumer.close()
        producer.close(0)


def test_clients_can_be_closed_in_every_state(broker: Broker) -> None:
    began_s = time.monotonic()
    for where in settings(broker), NOBODY:
        Producer(where).close(0)
        producer = Producer(where)
        producer.produce("any", b"x")
        producer.close(0)
        assert producer.close()
        transactional = Producer(where, **{"transactional.id": "t"})
        transactional.close(0)
        for prepare in (
            lambda _: None,
            lambda consumer: consumer.subscribe(["any"]),
            lambda consumer: (consumer.subscribe(["any"]), consumer.poll(0.05)),
            lambda consumer: consumer.assign([TopicPartition("any", 0)]),
            lambda consumer: (consumer.subscribe(["any"]), consumer.unsubscribe()),
            lambda consumer: (consumer.subscribe(["^a.*"]), consumer.poll(0.05)),
        ):
            consumer = Consumer(where, **{"group.id": "any"})
            prepare(consumer)
            consumer.close()
            consumer.close()
    assert time.monotonic() - began_s < DEADLINE_S, "some wait for who never comes"


def test_an_exception_of_a_callback_is_raised_and_breaks_nothing(broker: Broker) -> None:
    producer = Producer(settings(broker))
    reports: list[bytes] = []

    def report(error: KafkaError | None, message: Any) -> None:
        reports.append(message.value())
        if message.value() == b"2":
            raise ValueError("not this one")

    for value in b"1", b"2", b"3":
        producer.produce("raising", value, partition=0, on_delivery=report)
    with pytest.raises(ValueError, match="not this one"):
        producer.flush(DEADLINE_S)
    assert producer.flush(DEADLINE_S) == 0
    assert reports == [b"1", b"2", b"3"]
    producer.close()

    consumer = Consumer(settings(broker), **{"group.id": "r", "auto.offset.reset": "earliest"})

    def assigned(_: Consumer, partitions: list[TopicPartition]) -> None:
        raise ValueError("no partitions, thanks")

    consumer.subscribe(["raising"], on_assign=assigned)
    with pytest.raises(ValueError, match="no partitions"):
        consumer.poll(DEADLINE_S)
    message = consumer.poll(DEADLINE_S)
    assert message is not None
    assert message.value() == b"1"
    consumer.close()


def test_calls_on_closed_clients_raise(broker: Broker) -> None:
    producer = Producer(settings(broker))
    producer.close()
    for use in (
        lambda: producer.produce("t", b""),
        lambda: producer.poll(0),
        lambda: producer.flush(0),
        lambda: producer.list_topics(),
        lambda: producer.init_transactions(),
    ):
        with pytest.raises(RuntimeError, match="Producer has been closed"):
            use()
    consumer = Consumer(settings(broker), **{"group.id": "closed"})
    consumer.close()
    for use in (
        lambda: consumer.poll(0),
        lambda: consumer.consume(1, 0),
        lambda: consumer.subscribe(["t"]),
        lambda: consumer.commit(),
        lambda: consumer.position([TopicPartition("t", 0)]),
    ):
        with pytest.raises(RuntimeError, match="Consumer closed"):
            use()


def test_a_producer_stays_within_its_buffer(broker: Broker) -> None:
    with broker.faults.delay("Produce", 60):
        producer = Producer(settings(broker), **{"queue.buffering.max.messages": 1000})
        with pytest.raises(BufferError):
            fill(producer, b"x")
        assert len(producer) == 1000
        patient = Producer(settings(broker), **{"buffer.memory": 100_000, "max.block.ms": 200})
        began_s = time.monotonic()
        with pytest.raises(BufferError):
            fill(patient, bytes(1_000))
        assert time.monotonic() - began_s >= 0.2
        for each in producer, patient:
            each.purge()
            each.close(1)


def fill(producer: Producer, value: bytes) -> None:
    for _ in range(2_000):
        producer.produce("t", value)


def run(source: str, broker: Broker, address: str = "", logs: str = "") -> str:
    """What a program prints; it has to end in time, and log nothing else than `logs` matches."""
    program = "from barnabas import Consumer, KafkaException, Producer\n"
    program += f"S = {{'bootstrap.servers': {address or broker.bootstrap_servers!r}}}\n"
    ended = subprocess.run(
        [sys.executable, "-c", program + textwrap.dedent(source)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == 0
    assert re.fullmatch(logs, ended.stderr), ended.stderr
    return ended.stdout
