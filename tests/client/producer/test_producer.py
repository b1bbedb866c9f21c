"""The plain producer against a broker in this process: what users of confluent_kafka rely on."""

import json
import signal
import threading
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from tests.wait import wait_until

from barnabas.client.cluster import Deadline
from barnabas.client.errors import KafkaError
from barnabas.client.producer import Producer
from barnabas.client.producer._partitioners import murmur2
from barnabas.client.producer.arrow_encoder import ArrowBatchEncoder
from barnabas.testing import Broker


def poll_until(condition: Callable[[], object], producer: Producer) -> None:
    def is_met_after_a_poll() -> object:
        producer.poll(0.05)
        return condition()

    wait_until(is_met_after_a_poll, "delivery reports", poll_s=0)


def test_records_are_delivered_and_reported_in_order(make: Callable[..., Producer]) -> None:
    producer = make()
    reports: list[Any] = []
    for index in range(100):
        producer.produce(
            "one",
            f"value {index}",
            key=f"key {index}",
            headers={"n": str(index)},
            timestamp=1000 + index,
            on_delivery=lambda error, message: reports.append((error, message)),
        )
    assert len(producer) == 100
    assert producer.flush(20) == 0
    assert len(producer) == 0
    assert all(error is None for error, _ in reports)
    messages = [message for _, message in reports]
    assert [message.value() for message in messages] == [b"value %d" % i for i in range(100)]
    first = messages[0].offset()
    assert [message.offset() - first for message in messages] == list(range(100))
    last = messages[-1]
    assert (last.topic(), last.partition(), last.key()) == ("one", 0, b"key 99")
    assert last.headers() == [("n", b"99")]
    assert last.timestamp() == (1, 1099)
    assert last.latency() > 0


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_every_compression_type_is_accepted(make: Callable[..., Producer], codec: str) -> None:
    producer = make(compression_type=codec)
    reports: list[Any] = []
    for _ in range(100):
        producer.produce("t", b"x" * 100, on_delivery=lambda error, _: reports.append(error))
    assert producer.flush(20) == 0
    assert reports == [None] * 100
    rate = producer.metrics()["producer-metrics:compression-rate-avg:{client-id=barnabas}"]
    assert float(rate) < 0.9


@pytest.mark.parametrize("acks", [0, 1, "all"])
def test_every_acks_is_reported(make: Callable[..., Producer], acks: Any) -> None:
    producer = make(acks=acks, enable_idempotence=False)
    reports: list[Any] = []
    producer.produce(
        "one", b"x", on_delivery=lambda error, message: reports.append((error, message))
    )
    assert producer.flush(20) == 0
    ((error, message),) = reports
    assert error is None
    assert (message.offset() is None) == (acks == 0)


def test_the_delivery_callback_of_the_settings_is_the_default(
    make: Callable[..., Producer],
) -> None:
    reports: list[bytes] = []
    producer = make(on_delivery=lambda _, message: reports.append(message.value()))
    producer.produce("one", b"1")
    producer.produce("one", b"2", callback=lambda *_: reports.append(b"its own"))
    producer.flush(20)
    assert reports == [b"1", b"its own"]


def test_flush_raises_what_a_callback_raises_and_continues(
    make: Callable[..., Producer],
) -> None:
    producer = make()
    reports: list[bytes] = []

    def report(_: object, message: Any) -> None:
        reports.append(message.value())
        if message.value() == b"0":
            raise LookupError("from a callback")

    for index in range(3):
        producer.produce("one", b"%d" % index, on_delivery=report)
    with pytest.raises(LookupError):
        producer.flush(20)
    assert producer.flush(20) == 0
    assert reports == [b"0", b"1", b"2"]


def test_a_topic_is_created_by_the_first_record(make: Callable[..., Producer]) -> None:
    producer = make()
    reports: list[Any] = []
    producer.produce("made-by-producing", b"x", on_delivery=lambda error, _: reports.append(error))
    assert producer.flush(30) == 0
    assert reports == [None]


def test_records_of_an_invalid_topic_are_reported(make: Callable[..., Producer]) -> None:
    producer = make()
    reports: list[Any] = []
    for _ in range(2):  # the second finds metadata that rejects the topic
        producer.produce("no such topic!", b"x", on_delivery=lambda error, _: reports.append(error))
        assert producer.flush(20) == 0
    assert [error.code() for error in reports] == [KafkaError.TOPIC_EXCEPTION] * 2


def test_records_time_out_without_a_broker() -> None:
    producer = Producer({"bootstrap.servers": "127.0.0.1:1", "message.timeout.ms": 500})
    reports: list[Any] = []
    producer.produce("t", b"x", on_delivery=lambda error, _: reports.append(error))
    assert producer.flush(20) == 0
    assert reports[0].code() == KafkaError._MSG_TIMED_OUT
    producer.close(5)


def test_flush_returns_what_is_left_after_its_timeout() -> None:
    producer = Producer({"bootstrap.servers": "127.0.0.1:1"})
    producer.produce("t", b"x")
    assert producer.flush(0.05) == 1
    reports: list[Any] = []
    producer.produce("t", b"x", on_delivery=lambda error, _: reports.append(error))
    producer.purge()
    producer.poll(0)
    assert [error.code() for error in reports] == [KafkaError._PURGE_QUEUE]
    assert len(producer) == 0
    producer.close(5)


def test_an_unreachable_broker_is_reported_to_error_cb() -> None:
    reports: list[Any] = []
    producer = Producer({"bootstrap.servers": "127.0.0.1:1", "error_cb": reports.append})
    producer.produce("t", b"x")
    poll_until(lambda: reports, producer)
    assert any("127.0.0.1:1" in error.str() for error in reports)
    producer.purge()
    producer.close(5)


def test_a_full_queue_is_a_buffer_error_until_callbacks_have_run(
    make: Callable[..., Producer],
) -> None:
    producer = make(queue_buffering_max_messages=2)
    for _ in range(2):
        producer.produce("one", b"x", on_delivery=lambda *_: None)
    with pytest.raises(BufferError):
        producer.produce("one", b"x")
    producer.flush(20)
    producer.produce("one", b"x")


def test_a_blocked_producer_runs_callbacks(
    make: Callable[..., Producer],
) -> None:
    reports: list[Any] = []
    producer = make(queue_buffering_max_messages=10, max_block_ms=20_000)
    for _ in range(100):
        producer.produce("one", b"x", on_delivery=lambda error, _: reports.append(error))
    assert producer.flush(20) == 0
    assert reports == [None] * 100


def test_calls_on_a_closed_producer_raise(broker: Broker) -> None:
    with Producer({"bootstrap.servers": broker.bootstrap_servers}) as producer:
        producer.produce("one", b"x")
    for call in (
        lambda: producer.produce("one", b"x"),
        lambda: producer.poll(0),
        lambda: producer.flush(0),
        lambda: producer.produce_arrow("one", pa.record_batch({"value": [b"x"]})),
    ):
        with pytest.raises(RuntimeError):
            call()
    assert producer.close()


def test_no_settings_are_a_type_error() -> None:
    with pytest.raises(TypeError):
        Producer()
    with pytest.raises(TypeError):
        Producer("localhost:9092")  # type: ignore[arg-type]


def test_produce_batch_marks_the_dictionaries_that_failed(
    make: Callable[..., Producer],
) -> None:
    producer = make(message_max_bytes=1000)
    messages = [{"value": b"1", "key": b"k"}, {"value": b"x" * 2000}, {"value": b"3"}]
    assert producer.produce_batch("one", messages) == 2
    assert messages[1]["_error"].code() == KafkaError.MSG_SIZE_TOO_LARGE  # type: ignore[attr-defined]
    assert producer.flush(20) == 0


def test_interceptors_change_records_and_see_acknowledgements(
    make: Callable[..., Producer],
) -> None:
    heard: list[Any] = []

    class Interceptor:
        def on_send(self, record: Any) -> Any:
            record.value = record.value.upper()
            return record

        def on_acknowledgement(self, error: Any, message: Any) -> None:
            heard.append((error, message.value()))

    class Broken:
        def on_send(self, record: Any) -> Any:
            raise LookupError("from an interceptor")

    reports: list[bytes] = []
    producer = make(interceptors=[Interceptor(), Broken()])
    producer.produce("one", "word", on_delivery=lambda _, message: reports.append(message.value()))
    producer.produce("one", "other")
    producer.flush(20)
    assert reports == [b"WORD"]
    assert heard == [(None, b"WORD"), (None, b"OTHER")]


def test_statistics_are_json_in_librdkafkas_format(make: Callable[..., Producer]) -> None:
    reports: list[str] = []
    producer = make(statistics_interval_ms=50, stats_cb=reports.append)
    producer.produce("one", b"x")
    poll_until(lambda: reports and json.loads(reports[-1])["txmsgs"] == 1, producer)
    last_reported = json.loads(reports[-1])
    assert last_reported["type"] == "producer"
    assert last_reported["topics"]["one"]["partitions"]["0"]["txmsgs"] == 1
    assert "UP" in {broker["state"] for broker in last_reported["brokers"].values()}


def test_metrics_have_javas_names(make: Callable[..., Producer]) -> None:
    producer = make(client_id="me")
    for _ in range(50):
        producer.produce("one", b"x" * 50)
    producer.flush(20)
    metrics = producer.metrics()
    assert metrics["producer-metrics:record-send-total:{client-id=me}"] == 50
    assert metrics["producer-topic-metrics:record-send-total:{client-id=me, topic=one}"] == 50
    for name in ("batch-size-avg", "record-queue-time-avg", "request-latency-max"):
        assert float(metrics[f"producer-metrics:{name}:{{client-id=me}}"]) > 0


def test_a_producer_lists_topics_and_the_cluster_id(make: Callable[..., Producer]) -> None:
    producer = make()
    assert len(producer.list_topics("t", 20).topics["t"].partitions) == 3
    assert producer.cluster_id(20)


def test_rows_go_to_the_partitions_of_their_keys(make: Callable[..., Producer]) -> None:
    producer = make()
    keys = [b"key %d" % (i % 11) for i in range(1000)]
    offsets: dict[int, int] = {}
    for partition in range(3):
        producer.produce(
            "t",
            b"before",
            partition=partition,
            on_delivery=lambda _, message: offsets.update({message.partition(): message.offset()}),
        )
    producer.flush(20)
    reports: list[tuple[Any, int]] = []
    rows = pa.record_batch({"key": keys, "value": [b"%d" % i for i in range(1000)]})
    assert (
        producer.produce_arrow("t", rows, lambda error, count: reports.append((error, count)))
        == 1000
    )
    assert producer.flush(20) == 0
    assert {error for error, _ in reports} == {None}
    assert sum(count for _, count in reports) == 1000
    before = dict(offsets)
    for partition in range(3):
        producer.produce(
            "t",
            b"after",
            partition=partition,
            on_delivery=lambda _, message: offsets.update({message.partition(): message.offset()}),
        )
    producer.flush(20)
    for partition in range(3):
        expected = sum(murmur2(key) % 3 == partition for key in keys)
        assert offsets[partition] - before[partition] - 1 == expected


def test_rows_without_a_partition_go_to_those_of_their_keys(
    make: Callable[..., Producer],
) -> None:
    producer = make()
    producer.produce("t", b"before")
    producer.flush(20)
    keys = [b"key %d" % i for i in range(100)]
    named = [i % 3 if i % 2 else None for i in range(100)]
    rows = pa.record_batch({"key": keys, "value": keys, "partition": pa.array(named, pa.int32())})
    encoder = ArrowBatchEncoder(producer._settings, producer._accumulator, "t")
    found = encoder._partitions_of(rows).to_pylist()
    assert found == [
        murmur2(key) % 3 if partition is None else partition
        for key, partition in zip(keys, named, strict=True)
    ]


@pytest.mark.parametrize("partition", [7, -1])
def test_rows_that_name_a_missing_partition_are_rejected(
    make: Callable[..., Producer], partition: int
) -> None:
    producer = make()
    rows = pa.record_batch({"value": [b"x"], "partition": [partition]})
    with pytest.raises(ValueError, match=f"{partition} to {partition}; t has 3"):
        producer.produce_arrow("t", rows)
    with pytest.raises(TypeError):
        producer.produce_arrow("t", [b"x"])  # type: ignore[arg-type]


def test_ctrl_c_can_interrupt_a_poll(make: Callable[..., Producer]) -> None:
    producer, main = make(), threading.main_thread().ident
    assert main is not None
    # Raised anywhere else, it would not be looked at before the wait is over.
    interrupt = threading.Timer(0.1, signal.pthread_kill, (main, signal.SIGINT))
    deadline = Deadline.after(60_000)

    def interrupted() -> None:
        interrupt.start()
        producer.poll(60)

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert not deadline.has_passed


def test_records_outlive_a_restart_of_the_broker_once_each_and_in_order() -> None:
    reports: list[Any] = []
    with Broker() as broker:
        broker.create_topic("kept", 1)
        settings = {"bootstrap.servers": broker.bootstrap_servers, "linger.ms": 0}
        with Producer(settings) as producer:
            for index in range(3000):
                producer.produce(
                    "kept", b"%d" % index, on_delivery=lambda error, m: reports.append((error, m))
                )
                if index % 100 == 0:
                    producer.poll(0.001)
                if index == 1500:
                    broker.restart()
            assert producer.flush(60) == 0
    assert {error for error, _ in reports} == {None}
    assert [message.value() for _, message in reports] == [b"%d" % i for i in range(3000)]
    assert [message.offset() for _, message in reports] == list(range(3000))


def test_a_timeout_must_be_a_number(make: Callable[..., Producer]) -> None:
    producer = make()
    for wait in (producer.poll, producer.flush):
        with pytest.raises(TypeError):
            wait(None)  # type: ignore[arg-type]
