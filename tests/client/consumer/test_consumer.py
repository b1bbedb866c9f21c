"""The plain consumer against a broker: what it reads, tells, commits and refuses."""

import json
import re
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from tests.conformance.brokers import PeerBroker
from tests.wait import wait_until

from barnabas import (
    OFFSET_BEGINNING,
    OFFSET_END,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)
from barnabas.admin import AdminClient, NewTopic
from barnabas.testing import Broker

MakeConsumer = Callable[..., Consumer]


@pytest.fixture(scope="module", params=["broker", pytest.param("kafka", marks=pytest.mark.peer)])
def bootstrap(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """Barnabas; and with `-m peer` the real Kafka, which proves the tests right."""
    if request.param == "broker":
        with Broker() as running:
            yield running.bootstrap_servers
        return
    kafka = PeerBroker(tmp_path_factory.mktemp("kafka"))
    kafka.start()
    yield kafka.bootstrap
    kafka.stop()


@pytest.fixture
def topic(bootstrap: str, request: pytest.FixtureRequest) -> str:
    name = re.sub(r"[^a-z_]", "-", request.node.name)
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(name, 2, 1)])[name].result(30)
    return name


@pytest.fixture
def make(bootstrap: str, request: pytest.FixtureRequest) -> Iterator[MakeConsumer]:
    made: list[Consumer] = []

    def make_consumer(**settings: Any) -> Consumer:
        conf: dict[str, Any] = {
            "bootstrap.servers": bootstrap,
            "group.id": request.node.name,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
        for name, value in settings.items():
            conf[name if name.startswith(("on_", "stats_", "error_")) else dotted(name)] = value
        made.append(Consumer(conf))
        return made[-1]

    yield make_consumer
    for consumer in made:
        consumer.close()


def dotted(name: str) -> str:
    return name.replace("_", ".")


def produce(bootstrap: str, topic: str, count: int, partition: int = 0, **settings: Any) -> None:
    conf = {"bootstrap.servers": bootstrap, **settings}
    with Producer(conf) as producer:
        for index in range(count):
            producer.produce(topic, b"%d" % index, key=b"k", partition=partition)
        assert producer.flush(30) == 0


def from_beginning(topic: str, *partitions: int) -> list[TopicPartition]:
    return [TopicPartition(topic, each, OFFSET_BEGINNING) for each in partitions or (0,)]


def values(messages: list[Message]) -> list[int]:
    assert [each.error() for each in messages if each.error()] == []
    return [int(each.value()) for each in messages]


def test_partitions_assigned_at_the_beginning_are_read_from_there(
    bootstrap: str, topic: str, make: MakeConsumer
) -> None:
    produce(bootstrap, topic, 10)
    produce(bootstrap, topic, 5, partition=1)
    consumer = make()
    consumer.assign(from_beginning(topic, 0, 1))
    found = consumer.consume(15, 20)
    assert values([each for each in found if each.partition() == 0]) == list(range(10))
    assert values([each for each in found if each.partition() == 1]) == list(range(5))
    assert consumer.position(from_beginning(topic, 0)) == from_beginning(topic, 0)
    assert [each.offset for each in consumer.position(from_beginning(topic, 0, 1))] == [10, 5]
    assert consumer.lag() == {TopicPartition(topic, 0): 0, TopicPartition(topic, 1): 0}


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_every_compression_is_read(
    bootstrap: str, topic: str, make: MakeConsumer, codec: str
) -> None:
    produce(bootstrap, topic, 100, **{"compression.type": codec})
    consumer = make(check_crcs=True)
    consumer.assign(from_beginning(topic))
    assert values(consumer.consume(100, 20)) == list(range(100))


def test_a_seek_discards_buffered_messages(bootstrap: str, topic: str, make: MakeConsumer) -> None:
    produce(bootstrap, topic, 100)
    consumer = make()
    consumer.assign(from_beginning(topic))
    assert values(consumer.consume(3, 20)) == [0, 1, 2]
    consumer.seek(TopicPartition(topic, 0, 90))
    assert values(consumer.consume(10, 20)) == list(range(90, 100))
    consumer.seek(TopicPartition(topic, 0, 5))
    message = consumer.poll(20)
    assert message is not None
    assert message.offset() == 5


def test_a_partition_assigned_at_the_end_has_new_messages_alone(
    bootstrap: str, topic: str, make: MakeConsumer
) -> None:
    produce(bootstrap, topic, 5)
    consumer = make(enable_partition_eof=True)
    consumer.assign([TopicPartition(topic, 0, OFFSET_END)])
    end = consumer.poll(20)
    assert end is not None
    assert end.error() == KafkaError._PARTITION_EOF
    assert end.offset() == 5
    produce(bootstrap, topic, 1)
    message = consumer.poll(20)
    assert message is not None
    assert (message.offset(), message.error()) == (5, None)


def test_a_resumed_partition_continues_where_it_was_paused(
    bootstrap: str, topic: str, make: MakeConsumer
) -> None:
    produce(bootstrap, topic, 10)
    produce(bootstrap, topic, 5, partition=1)
    consumer = make()
    consumer.assign(from_beginning(topic))
    assert values(consumer.consume(4, 20)) == [0, 1, 2, 3]
    consumer.pause([TopicPartition(topic, 0)])
    consumer.incremental_assign(from_beginning(topic, 1))
    assert {each.partition() for each in consumer.consume(5, 20)} == {1}
    assert consumer.poll(0) is None
    consumer.resume([TopicPartition(topic, 0)])
    assert values(consumer.consume(6, 20)) == [4, 5, 6, 7, 8, 9]


def test_the_next_consumer_starts_at_the_committed_offsets(
    bootstrap: str, topic: str, make: MakeConsumer
) -> None:
    produce(bootstrap, topic, 10)
    first = make()
    first.assign([TopicPartition(topic, 0)])
    messages = first.consume(4, 20)
    committed = first.commit(message=messages[2], asynchronous=False)
    assert committed is not None
    assert [(each.offset, each.error) for each in committed] == [(3, None)]
    assert [each.offset for each in first.committed([TopicPartition(topic, 0)], 20)] == [3]
    first.close()
    second = make()
    second.assign([TopicPartition(topic, 0)])
    assert values(second.consume(2, 20)) == [3, 4]
    second.commit(asynchronous=False)
    assert [each.offset for each in second.committed([TopicPartition(topic, 0)], 20)] == [5]


def test_auto_commit_commits_delivered_messages_on_close(
    bootstrap: str, topic: str, make: MakeConsumer
) -> None:
    produce(bootstrap, topic, 10)
    reported: list[Any] = []
    first = make(enable_auto_commit=True, on_commit=lambda error, offsets: reported.append(offsets))
    first.subscribe([topic])
    assert values(first.consume(4, 30)) == [0, 1, 2, 3]
    first.close()
    assert [[(each.partition, each.offset) for each in one] for one in reported] == [[(0, 4)]]
    second = make()
    second.subscribe([topic])
    assert values(second.consume(6, 30)) == [4, 5, 6, 7, 8, 9]


def test_a_commit_uses_the_stored_offsets(bootstrap: str, topic: str, make: MakeConsumer) -> None:
    produce(bootstrap, topic, 10)
    consumer = make(enable_auto_offset_store=False)
    consumer.assign(from_beginning(topic))
    messages = consumer.consume(5, 20)
    with pytest.raises(KafkaException) as refused:
        consumer.commit(asynchronous=False)
    assert refused.value.args[0] == KafkaError._NO_OFFSET
    consumer.store_offsets(messages[1])
    committed = consumer.commit(asynchronous=False)
    assert committed is not None
    assert [each.offset for each in committed] == [2]


def test_offsets_are_found_by_timestamp(bootstrap: str, topic: str, make: MakeConsumer) -> None:
    with Producer({"bootstrap.servers": bootstrap}) as producer:
        for index in range(10):
            producer.produce(topic, b"%d" % index, partition=0, timestamp=1000 + index)
        producer.flush(30)
    consumer = make()
    asked = [TopicPartition(topic, 0, 1004), TopicPartition(topic, 1, 1004)]
    found = consumer.offsets_for_times(asked, 20)
    assert [each.offset for each in found] == [4, OFFSET_END]
    assert consumer.get_watermark_offsets(TopicPartition(topic, 0), 20) == (0, 10)


def test_an_offset_out_of_range_follows_auto_offset_reset(
    bootstrap: str, topic: str, make: MakeConsumer
) -> None:
    produce(bootstrap, topic, 10)
    forgiving = make()
    forgiving.assign([TopicPartition(topic, 0, 5000)])
    assert values(forgiving.consume(10, 20)) == list(range(10))
    strict = make(auto_offset_reset="error")
    strict.assign([TopicPartition(topic, 0, 5000)])
    message = strict.poll(20)
    assert message is not None
    assert message.error() == KafkaError._AUTO_OFFSET_RESET
    strict.seek(TopicPartition(topic, 0, 9))
    assert values(strict.consume(1, 20)) == [9]


def test_aborted_transactions_are_read_with_read_uncommitted_alone(
    bootstrap: str, topic: str, make: MakeConsumer
) -> None:
    conf = {"bootstrap.servers": bootstrap, "transactional.id": topic}
    with Producer(conf) as producer:
        producer.init_transactions(30)
        for number in range(4):
            producer.begin_transaction()
            producer.produce(topic, b"%d" % number, partition=0)
            if number % 2:
                producer.commit_transaction(30)
            else:
                producer.flush(30)
                producer.abort_transaction(30)
    for isolation, expected in (("read_committed", [1, 3]), ("read_uncommitted", [0, 1, 2, 3])):
        consumer = make(isolation_level=isolation, enable_partition_eof=True)
        consumer.assign(from_beginning(topic))
        found = consumer.consume(len(expected) + 1, 20)
        assert found[-1].error() == KafkaError._PARTITION_EOF
        assert values(found[:-1]) == expected
        assert consumer.lag() == {TopicPartition(topic, 0): 0}


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_rebalance_callbacks_run_in_poll_and_may_assign(
    bootstrap: str, topic: str, make: MakeConsumer, protocol: str
) -> None:
    produce(bootstrap, topic, 10)
    events: list[tuple[str, int]] = []

    def on_assign(consumer: Consumer, partitions: list[TopicPartition]) -> None:
        events.append(("assigned", len(partitions)))
        for each in partitions:
            each.offset = 7
        if protocol == "classic":
            consumer.assign(partitions)
        else:
            consumer.incremental_assign(partitions)

    def on_revoke(consumer: Consumer, partitions: list[TopicPartition]) -> None:
        events.append(("revoked", len(partitions)))
        consumer.commit(asynchronous=False)

    consumer = make(group_protocol=protocol)
    consumer.subscribe([topic], on_assign=on_assign, on_revoke=on_revoke)
    assert values(consumer.consume(3, 30)) == [7, 8, 9]
    consumer.close()
    assert events == [("assigned", 2), ("revoked", 2)]
    assert make().committed([TopicPartition(topic, 0)], 20)[0].offset == 10


def test_an_error_of_a_callback_is_raised_from_poll(
    bootstrap: str, topic: str, make: MakeConsumer
) -> None:
    produce(bootstrap, topic, 3)

    def on_assign(consumer: Consumer, partitions: list[TopicPartition]) -> None:
        raise ZeroDivisionError

    consumer = make()
    consumer.subscribe([topic], on_assign=on_assign)
    with pytest.raises(ZeroDivisionError):
        consumer.poll(30)
    assert values(consumer.consume(3, 30)) == [0, 1, 2]


def test_arrow_has_the_same_records_across_partitions(
    bootstrap: str, topic: str, make: MakeConsumer
) -> None:
    pytest.importorskip("pyarrow")
    produce(bootstrap, topic, 100)
    produce(bootstrap, topic, 50, partition=1)
    consumer = make()
    consumer.assign(from_beginning(topic, 0, 1))
    rows = 0
    seen: list[tuple[int, int, bytes]] = []
    while rows < 150:
        batch = consumer.consume_arrow(50, 20)
        assert 0 < batch.num_rows <= 50
        assert batch.schema.names == [
            *("topic", "partition", "offset", "timestamp", "key", "value", "headers")
        ]
        rows += batch.num_rows
        assert set(batch.column("topic").to_pylist()) == {topic}
        columns = (batch.column(name).to_pylist() for name in ("partition", "offset", "value"))
        seen += zip(*columns, strict=True)
    assert sorted(seen) == sorted(
        (partition, offset, b"%d" % offset)
        for partition, count in ((0, 100), (1, 50))
        for offset in range(count)
    )
    assert [each.offset for each in consumer.position(from_beginning(topic, 0, 1))] == [100, 50]
    assert consumer.consume_arrow(10, 0).num_rows == 0


def test_prefetching_stops_at_its_limit_and_continues_with_space(
    bootstrap: str, topic: str, make: MakeConsumer
) -> None:
    produce(bootstrap, topic, 2000)
    consumer = make(**{"queued.min.messages": 10, "max.partition.fetch.bytes": 1000})
    consumer.assign(from_beginning(topic))
    assert values(consumer.consume(2000, 60)) == list(range(2000))


def test_the_consumer_continues_after_a_broker_restart(
    make: MakeConsumer,
) -> None:
    with Broker() as broker:
        broker.create_topic("restarted", partitions=1)
        produce(broker.bootstrap_servers, "restarted", 5)
        consumer = make(**{"bootstrap.servers": broker.bootstrap_servers})
        consumer.assign(from_beginning("restarted"))
        assert values(consumer.consume(5, 20)) == [0, 1, 2, 3, 4]
        broker.restart()
        produce(broker.bootstrap_servers, "restarted", 3)
        assert [each.offset() for each in consumer.consume(3, 60)] == [5, 6, 7]


def test_statistics_are_librdkafkas_json(bootstrap: str, topic: str, make: MakeConsumer) -> None:
    produce(bootstrap, topic, 5)
    reported: list[str] = []
    consumer = make(
        **{"statistics.interval.ms": 50, "stats_cb": reported.append, "group.id": "statistics"}
    )
    consumer.assign(from_beginning(topic))
    assert len(consumer.consume(5, 20)) == 5
    deadline_s = time.monotonic() + 20
    while not reported or json.loads(reported[-1])["rxmsgs"] < 5:
        assert time.monotonic() < deadline_s
        consumer.poll(0.1)
    partition = json.loads(reported[-1])["topics"][topic]["partitions"]["0"]
    assert (partition["hi_offset"], partition["consumer_lag_stored"]) == (5, 0)


def test_invalid_calls_are_rejected_as_confluent_kafka_rejects_them(make: MakeConsumer) -> None:
    with pytest.raises(ValueError, match=r"group\.id must be set"):
        Consumer({"bootstrap.servers": "localhost:1"})
    with pytest.raises(TypeError, match="expected configuration dict"):
        Consumer()
    consumer = make()
    unassigned: Any = TopicPartition("nowhere", 0, 5)
    rejected: list[tuple[Callable[[], object], type[Exception], str]] = [
        (lambda: consumer.poll("1"), TypeError, "real number"),  # type: ignore[arg-type]
        (lambda: consumer.consume(-1), ValueError, "between 0 and 1000000"),
        (lambda: consumer.subscribe("t"), TypeError, "list of topic"),  # type: ignore[arg-type]
        (lambda: consumer.subscribe([]), KafkaException, "_INVALID_ARG"),
        (lambda: consumer.subscribe(["t"], on_assign=5), TypeError, "callable"),  # type: ignore[arg-type]
        (lambda: consumer.assign("t"), TypeError, "list of TopicPartition"),  # type: ignore[arg-type]
        (lambda: consumer.seek(unassigned), KafkaException, "_STATE"),
        (lambda: consumer.incremental_unassign([unassigned]), KafkaException, "not in the"),
        (lambda: consumer.store_offsets(offsets=[unassigned]), KafkaException, "_INVALID_ARG"),
        (lambda: consumer.store_offsets(), ValueError, "either message or offsets"),
        (lambda: consumer.commit(asynchronous=False), KafkaException, "_NO_OFFSET"),
        (
            lambda: consumer.commit(message=Message(), offsets=[unassigned]),
            ValueError,
            "exclusive",
        ),
    ]
    for call, kind, words in rejected:
        with pytest.raises(kind, match=words):
            call()
    assert consumer.get_watermark_offsets(unassigned, cached=True) == (-1001, -1001)
    assert consumer.consume(0, 0) == []
    assert consumer.memberid() is None


def test_a_closed_consumer_raises(make: MakeConsumer) -> None:
    consumer = make()
    with consumer:
        pass
    consumer.close()
    for call in (
        lambda: consumer.poll(0),
        lambda: consumer.consume(1, 0),
        lambda: consumer.assignment(),
        lambda: consumer.subscribe(["t"]),
        lambda: consumer.commit(),
    ):
        with pytest.raises(RuntimeError, match="Consumer closed"):
            call()


def test_a_broker_that_does_not_respond_is_reported_to_error_cb(make: MakeConsumer) -> None:
    reported: list[KafkaError] = []
    consumer = make(**{"bootstrap.servers": "127.0.0.1:1", "error_cb": reported.append})
    consumer.subscribe(["t"])
    deadline_s = time.monotonic() + 30
    while not reported:
        assert time.monotonic() < deadline_s
        assert consumer.poll(0.1) is None
    assert "127.0.0.1:1" in reported[0].str()


def test_a_topic_that_does_not_exist_has_no_offsets(topic: str, make: MakeConsumer) -> None:
    consumer = make()
    unknown = TopicPartition(f"{topic}-of-nobody", 0, 0)
    with pytest.raises(KafkaException, match="_UNKNOWN_PARTITION"):
        consumer.get_watermark_offsets(unknown)
    with pytest.raises(KafkaException, match="_UNKNOWN_PARTITION"):
        consumer.offsets_for_times([unknown])
    known, missing = consumer.offsets_for_times([TopicPartition(topic, 0, 0), unknown])
    assert (known.error, missing.error) == (None, KafkaError._UNKNOWN_PARTITION)


def test_a_commit_raises_if_one_of_its_partitions_fails(topic: str, make: MakeConsumer) -> None:
    consumer = make()
    offsets = [TopicPartition(topic, 0, 1), TopicPartition(topic, 9, 1)]
    with pytest.raises(KafkaException, match="UNKNOWN_TOPIC_OR_PART"):
        consumer.commit(offsets=offsets, asynchronous=False)


def test_a_partition_is_assigned_once(topic: str, make: MakeConsumer) -> None:
    consumer = make()
    for assign in (consumer.assign, consumer.incremental_assign):
        with pytest.raises(KafkaException, match="_INVALID_ARG"):
            assign([TopicPartition(topic, 0), TopicPartition(topic, 0)])


def test_close_ends_a_poll_in_another_thread(topic: str, make: MakeConsumer) -> None:
    consumer = make()
    consumer.subscribe([topic])
    with ThreadPoolExecutor() as threads:
        polling = threads.submit(consumer.poll)
        consumer.poll(0.1)
        consumer.close()
        with pytest.raises(RuntimeError, match="closed"):
            polling.result(30)


@pytest.mark.parametrize(
    ("strategy", "wrong"), [("range", "incremental_assign"), ("cooperative-sticky", "assign")]
)
def test_a_rebalance_callback_must_assign_as_the_protocol_does(
    topic: str, make: MakeConsumer, strategy: str, wrong: str
) -> None:
    consumer = make(partition_assignment_strategy=strategy)
    consumer.subscribe([topic], on_assign=lambda it, partitions: getattr(it, wrong)(partitions))
    with pytest.raises(KafkaException, match="_STATE"):
        consumer.poll(30)
    assert len(consumer.assignment()) == 2, "it is assigned what it has not taken itself"


def test_a_subscribed_topic_that_does_not_exist_is_reported_once(make: MakeConsumer) -> None:
    consumer = make()
    consumer.subscribe(["absent", "missing"])
    errors = {}
    while len(errors) < 2:
        message = consumer.poll(10)
        assert message is not None
        errors[message.topic()] = message.error()
        assert message.partition() == 0
    assert errors == dict.fromkeys(["absent", "missing"], KafkaError.UNKNOWN_TOPIC_OR_PART)
    assert "Subscribed topic not available: absent: " in str(errors["absent"])
    assert consumer.poll(0) is None


def test_a_member_of_the_consumer_protocol_logs_a_topic_that_does_not_exist(
    make: MakeConsumer, caplog: pytest.LogCaptureFixture
) -> None:
    consumer = make(group_protocol="consumer", client_id="waiting")
    consumer.subscribe(["absent"])

    def lines() -> list[str]:
        return [line for line in caplog.messages if line.startswith("waiting: ")]

    wait_until(lambda: consumer.poll(0.1) is not None or bool(lines()), "it is logged", 30)
    [line] = lines()
    assert "Subscribed topic not available: absent" in line


def test_a_consumer_that_polls_without_a_subscription_says_so_once(
    make: MakeConsumer, caplog: pytest.LogCaptureFixture
) -> None:
    # Polls are checked every millisecond.
    consumer = make(max_poll_interval_ms=10, session_timeout_ms=6, client_id="idle")

    def lines() -> list[str]:
        return [line for line in caplog.messages if line.startswith("idle: ")]

    wait_until(lambda: consumer.poll(0.01) is not None or bool(lines()), "it is logged", 30)
    consumer.poll(0.1)
    [line] = lines()
    assert line.endswith("call subscribe() or assign() first")
