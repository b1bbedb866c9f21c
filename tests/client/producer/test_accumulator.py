"""Records go into batches as they come: compiled, and as the Python that the file also is."""

import threading
import time
from typing import Any

import pytest
from tests.uncompiled import load_uncompiled

from barnabas.client import _message as compiled_message
from barnabas.client.producer import _accumulator as compiled_accumulator
from barnabas.client.producer import _batch as compiled_batch
from barnabas.client.producer import _producer_base as compiled_base
from barnabas.client.producer import _queues as compiled_queues
from barnabas.client.producer.batch_finisher import BatchFinisher
from barnabas.wire.records.compression import Codec
from barnabas.wire.records.read import read_records


class Modules:
    def __init__(self, batch: Any, accumulator: Any, base: Any) -> None:
        self.ProducerBatch = batch.ProducerBatch
        self.RecordAccumulator = accumulator.RecordAccumulator
        self.ProducerBase = base.ProducerBase


@pytest.fixture(params=["compiled", "plain"], scope="module")
def modules(request: pytest.FixtureRequest) -> Modules:
    if request.param == "compiled":
        if not compiled_accumulator.COMPILED:
            pytest.skip("nothing is compiled here")
        return Modules(compiled_batch, compiled_accumulator, compiled_base)
    message = load_uncompiled(compiled_message)
    message.__name__ = compiled_message.__name__
    batch = load_uncompiled(compiled_batch, message=message)
    batch.__name__ = compiled_batch.__name__
    queues = load_uncompiled(compiled_queues, batch=batch)
    queues.__name__ = compiled_queues.__name__
    accumulator = load_uncompiled(compiled_accumulator, message=message, batch=batch, queues=queues)
    accumulator.__name__ = compiled_accumulator.__name__
    base = load_uncompiled(compiled_base, message=message, accumulator=accumulator)
    return Modules(batch, accumulator, base)


def build_accumulator(modules: Modules, partitions: int = 1, **settings: Any) -> Any:
    made = modules.RecordAccumulator(
        settings.pop("wake", lambda: None),
        **{
            "max_records": 1000,
            "max_bytes": 1_000_000,
            "max_record_bytes": 10_000,
            "batch_bytes": 1050,
            "batch_records": 100,
            "linger_s": 1000.0,
            **settings,
        },
    )
    if partitions:
        made.update_topic("t", partitions, range(partitions))
    return made


def drained(accumulator: Any) -> list[Any]:
    """All batches, in the order they would go."""
    accumulator.begin_flush()
    batches = []
    for queue in accumulator.ready(time.monotonic())[0]:
        while (batch := accumulator.take_batch(queue)) is not None:
            batches.append(batch)
    return batches


def records(batch: Any) -> list[Any]:
    BatchFinisher().finish(batch)
    return read_records(batch.buffer)


def test_a_record_is_encoded_with_all_its_fields(modules: Modules) -> None:
    accumulator = build_accumulator(modules)
    producer = modules.ProducerBase(accumulator)
    producer.produce("t", b"value", b"key", timestamp=1234, headers=[("a", b"1"), ("b", None)])
    producer.produce("t", "wörd", "kéy", timestamp=1200, headers={"c": "text"})
    producer.produce("t", None)
    (batch,) = drained(accumulator)
    first, second, third = records(batch)
    assert (first.timestamp, first.key, first.value) == (1234, b"key", b"value")
    assert first.headers == [("a", b"1"), ("b", None)]
    assert (second.timestamp, second.key, second.value) == (1200, "kéy".encode(), "wörd".encode())
    assert second.headers == [("c", b"text")]
    assert (third.key, third.value, third.headers) == (None, None, [])
    assert abs(third.timestamp - time.time() * 1000) < 60_000


@pytest.mark.parametrize("codec", list(Codec))
def test_a_closed_batch_reads_back_in_every_codec(modules: Modules, codec: Codec) -> None:
    accumulator = build_accumulator(modules)
    producer = modules.ProducerBase(accumulator)
    values = [b"%d" % i * 20 for i in range(20)]
    for value in values:
        producer.produce("t", value)
    finisher = BatchFinisher(codec)
    read = []
    for batch in drained(accumulator):
        finisher.finish(batch)
        read += [record.value for record in read_records(batch.buffer)]
    assert read == values


@pytest.mark.parametrize(
    "arguments",
    [
        {"value": 1},
        {"value": bytearray(b"x")},
        {"key": 1.5},
        {"headers": 1},
        {"headers": ["a"]},
        {"headers": [(b"a", b"1")]},
        {"headers": {"a": 1}},
        {"topic": b"t"},
        {"topic": None},
        {"partition": "0"},
        {"timestamp": "now"},
    ],
)
def test_arguments_of_wrong_types_are_type_errors(
    modules: Modules, arguments: dict[str, Any]
) -> None:
    if arguments.keys() & {"partition", "timestamp"} and modules.ProducerBase.__module__.startswith(
        "plain"
    ):
        pytest.skip("types of numbers are C's to check")
    producer = modules.ProducerBase(build_accumulator(modules))
    with pytest.raises(TypeError):
        producer.produce(**{"topic": "t", **arguments})


def test_a_batch_is_full_by_its_bytes_and_by_its_records(modules: Modules) -> None:
    accumulator = build_accumulator(modules)
    producer = modules.ProducerBase(accumulator)
    for _ in range(10):
        producer.produce("t", b"x" * 300)
    assert [batch.record_count for batch in drained(accumulator)] == [3, 3, 3, 1]
    accumulator = build_accumulator(modules, batch_records=4)
    producer = modules.ProducerBase(accumulator)
    for _ in range(10):
        producer.produce("t", b"x")
    assert [batch.record_count for batch in drained(accumulator)] == [4, 4, 2]


def test_a_record_larger_than_a_batch_has_one_to_itself(modules: Modules) -> None:
    accumulator = build_accumulator(modules)
    producer = modules.ProducerBase(accumulator)
    for size in (10, 5000, 10):
        producer.produce("t", b"x" * size)
    batches = drained(accumulator)
    assert [len(record.value) for batch in batches for record in records(batch)] == [10, 5000, 10]
    assert [batch.record_count for batch in batches] == [1, 1, 1]


def test_a_record_above_the_maximum_size_is_rejected(modules: Modules) -> None:
    from barnabas.client.errors import KafkaError, KafkaException

    accumulator = build_accumulator(modules)
    producer = modules.ProducerBase(accumulator)
    with pytest.raises(KafkaException) as raised:
        producer.produce("t", b"x" * 10_001)
    assert raised.value.args[0].code() == KafkaError.MSG_SIZE_TOO_LARGE
    assert accumulator.buffered_records == 0


def test_a_record_for_a_missing_partition_is_rejected(modules: Modules) -> None:
    from barnabas.client.errors import KafkaError, KafkaException

    producer = modules.ProducerBase(build_accumulator(modules, 2))
    with pytest.raises(KafkaException) as raised:
        producer.produce("t", b"x", partition=2)
    assert raised.value.args[0].code() == KafkaError._UNKNOWN_PARTITION


def test_a_full_buffer_is_a_buffer_error_until_a_batch_is_deallocated(modules: Modules) -> None:
    accumulator = build_accumulator(modules, max_records=2)
    producer = modules.ProducerBase(accumulator)
    producer.produce("t", b"1")
    producer.produce("t", b"2")
    with pytest.raises(BufferError):
        producer.produce("t", b"3")
    (batch,) = drained(accumulator)
    with pytest.raises(BufferError):  # it was taken, and is not delivered yet
        producer.produce("t", b"3")
    accumulator.deallocate(batch)
    producer.produce("t", b"3")
    assert accumulator.buffered_records == 1


def test_bytes_are_bounded_as_well(modules: Modules) -> None:
    accumulator = build_accumulator(modules, max_bytes=1000)
    producer = modules.ProducerBase(accumulator)
    producer.produce("t", b"x" * 900)
    with pytest.raises(BufferError):
        producer.produce("t", b"x" * 200)
    for batch in drained(accumulator):
        accumulator.deallocate(batch)
    assert accumulator.buffered_bytes == 0


def test_encoded_batches_are_bounded_too_but_one_always_fits(modules: Modules) -> None:
    accumulator = build_accumulator(modules, max_records=10)
    encoded = [
        modules.ProducerBatch.from_encoded("t", 0, bytearray(100), 20, 0, 0, 0.0, None)
        for _ in range(2)
    ]
    accumulator.append_encoded("t", 0, encoded[0])
    with pytest.raises(BufferError):
        accumulator.append_encoded("t", 0, encoded[1])
    accumulator.deallocate(encoded[0])
    accumulator.append_encoded("t", 0, encoded[1])
    assert accumulator.buffered_records == 20


def test_a_blocked_caller_is_notified_when_a_quarter_is_free(modules: Modules) -> None:
    accumulator = build_accumulator(modules, max_records=8, batch_records=1)
    producer = modules.ProducerBase(accumulator)
    for _ in range(8):
        producer.produce("t", b"x")
    batches = drained(accumulator)
    with pytest.raises(BufferError):
        producer.produce("t", b"x")
    assert [accumulator.deallocate(batch) for batch in batches] == [False, True] + 6 * [False]


def test_produce_waits_for_space_if_it_can(modules: Modules) -> None:
    accumulator = build_accumulator(modules, max_records=1)

    def wait_for_space(attempt: Any) -> None:
        for batch in drained(accumulator):
            accumulator.deallocate(batch)
        attempt()

    producer = modules.ProducerBase(accumulator, wait_for_space=wait_for_space)
    producer.produce("t", b"1")
    producer.produce("t", b"2")
    assert accumulator.buffered_records == 1


def test_records_of_a_topic_without_metadata_wait_in_order(modules: Modules) -> None:
    accumulator = build_accumulator(modules, 0)
    producer = modules.ProducerBase(accumulator)
    for index in range(5):
        producer.produce("t", b"%d" % index, headers={"n": str(index)})
    assert accumulator.take_new_topics() == ["t"]
    assert accumulator.buffered_records == 5
    assert drained(accumulator) == []
    assert accumulator.update_topic("t", 1, [0]) == []
    (batch,) = drained(accumulator)
    assert [record.value for record in records(batch)] == [b"0", b"1", b"2", b"3", b"4"]
    accumulator.deallocate(batch)
    assert (accumulator.buffered_records, accumulator.buffered_bytes) == (0, 0)


def test_records_of_a_topic_that_stays_unknown_fail(modules: Modules) -> None:
    reports: list[Any] = []
    accumulator = build_accumulator(modules, 0)
    producer = modules.ProducerBase(accumulator)
    producer.produce("t", b"1", on_delivery=lambda error, message: reports.append((error, message)))
    producer.produce("t", b"2")
    batch = accumulator.take_waiting("t")
    assert batch.record_count == 2
    batch.fail("error")
    assert batch.prepare_reports(False)
    assert batch.run_callbacks() == 1
    assert reports[0][0] == "error"
    assert reports[0][1].value() == b"1"
    accumulator.deallocate(batch)
    assert (accumulator.buffered_records, accumulator.buffered_bytes) == (0, 0)


def test_a_waiting_record_for_a_missing_partition_is_reported(modules: Modules) -> None:
    accumulator = build_accumulator(modules, 0)
    producer = modules.ProducerBase(accumulator)
    producer.produce("t", b"1", partition=5)
    producer.produce("t", b"2", partition=0)
    (misfit,) = accumulator.update_topic("t", 1, [0])
    assert misfit.record_count == 1
    assert len(drained(accumulator)) == 1


def test_delivery_reports_have_offsets_and_run_in_order(modules: Modules) -> None:
    reports: list[Any] = []
    accumulator = build_accumulator(modules)
    producer = modules.ProducerBase(accumulator)
    for index in range(6):
        on_delivery = None if index == 3 else lambda error, message: reports.append(message)
        producer.produce("t", b"%d" % index, on_delivery=on_delivery)
    (batch,) = drained(accumulator)
    batch.complete(100)
    assert batch.prepare_reports(False)
    assert batch.run_callbacks() == 5
    assert [message.offset() for message in reports] == [100, 101, 102, 104, 105]
    assert [message.value() for message in reports] == [b"0", b"1", b"2", b"4", b"5"]
    assert all(message.latency() >= 0 for message in reports)


def test_a_callback_that_raises_does_not_stop_the_others(modules: Modules) -> None:
    reports: list[bytes] = []

    def report(_: object, message: Any) -> None:
        reports.append(message.value())
        if message.value() == b"1":
            raise LookupError("from a callback")

    accumulator = build_accumulator(modules)
    producer = modules.ProducerBase(accumulator, report, None)
    for index in range(3):
        producer.produce("t", b"%d" % index)
    (batch,) = drained(accumulator)
    batch.complete(0)
    batch.prepare_reports(False)
    with pytest.raises(LookupError):
        batch.run_callbacks()
    assert batch.run_callbacks() == 1
    assert reports == [b"0", b"1", b"2"]


def test_only_errors_are_reported_if_the_setting_says_so(modules: Modules) -> None:
    accumulator = build_accumulator(modules)
    producer = modules.ProducerBase(accumulator, lambda *_: None, None)
    producer.produce("t", b"x")
    (batch,) = drained(accumulator)
    batch.complete(0)
    assert not batch.prepare_reports(True)


def test_keys_select_the_partition_and_records_without_one_stick(modules: Modules) -> None:
    from barnabas.client.producer._partitioners import murmur2

    accumulator = build_accumulator(modules, 8, hash_key=murmur2, sticky_ms=10**9)
    producer = modules.ProducerBase(accumulator)
    for index in range(50):
        producer.produce("t", b"x", b"key%d" % (index % 5))
    for batch in drained(accumulator):
        partitions = {murmur2(record.key) % 8 for record in records(batch)}
        assert partitions == {batch.topic_partition[1]}
    for _ in range(5):
        producer.produce("t", b"x")
    assert len(drained(accumulator)) == 1


def test_the_sticky_partition_changes_after_a_batch_of_bytes(modules: Modules) -> None:
    accumulator = build_accumulator(modules, 16, sticky_ms=10**9)
    producer = modules.ProducerBase(accumulator)
    for _ in range(400):
        producer.produce("t", b"x" * 100)
    batches = drained(accumulator)
    assert len({batch.topic_partition[1] for batch in batches}) > 4
    assert sum(batch.record_count for batch in batches) == 400


def test_the_sticky_partition_has_an_available_leader(modules: Modules) -> None:
    accumulator = build_accumulator(modules, 0, sticky_ms=0)
    accumulator.update_topic("t", 4, [1, 3])
    producer = modules.ProducerBase(accumulator)
    for _ in range(100):
        producer.produce("t", b"x")
    queues = accumulator.ready(time.monotonic() + 2000)[0]
    assert {queue.topic_partition[1] for queue in queues} == {1, 3}
    accumulator.set_unavailable(
        next(queue for queue in queues if queue.topic_partition[1] == 3), True
    )
    drained(accumulator)
    for _ in range(50):
        producer.produce("t", b"x")
    assert {batch.topic_partition[1] for batch in drained(accumulator)} == {1}


def test_the_users_partitioner_is_called_once_partitions_are_known(modules: Modules) -> None:
    calls: list[tuple[str, bytes | None, int]] = []

    def choose(topic: str, key: bytes | None, count: int) -> int:
        calls.append((topic, key, count))
        return 2 if key == b"two" else -1

    accumulator = build_accumulator(modules, 0, partitioner=choose)
    producer = modules.ProducerBase(accumulator)
    producer.produce("t", b"x", b"two")
    assert calls == []
    accumulator.update_topic("t", 3, [0, 1, 2])
    producer.produce("t", b"x", b"two")
    assert calls == [("t", b"two", 3)] * 2
    assert {batch.topic_partition[1] for batch in drained(accumulator)} == {2}
    bad = modules.ProducerBase(build_accumulator(modules, 3, partitioner=lambda *_: 9))
    with pytest.raises(ValueError, match="chose 9"):
        bad.produce("t", b"x")


def test_the_loop_is_woken_only_by_the_first_record_and_by_full_batches(modules: Modules) -> None:
    wakes: list[int] = []
    accumulator = build_accumulator(modules, wake=lambda: wakes.append(1))
    producer = modules.ProducerBase(accumulator)
    for _ in range(5):
        producer.produce("t", b"x")
    assert len(wakes) == 1
    accumulator.ready(time.monotonic())  # it looks, and sets its timer
    producer.produce("t", b"x")
    assert len(wakes) == 1
    for _ in range(20):
        producer.produce("t", b"x" * 100)
    assert len(wakes) == 2


def test_batches_are_due_when_they_have_lingered_or_are_full(modules: Modules) -> None:
    accumulator = build_accumulator(modules, 2, linger_s=5.0)
    producer = modules.ProducerBase(accumulator)
    began = time.monotonic()
    producer.produce("t", b"x", partition=0)
    queues, due_s = accumulator.ready(began)
    assert queues == []
    assert began <= due_s - 5 <= time.monotonic()
    assert [queue.topic_partition for queue in accumulator.ready(due_s)[0]] == [("t", 0)]
    for _ in range(4):
        producer.produce("t", b"x" * 300, partition=1)
    assert [queue.topic_partition for queue in accumulator.ready(began)[0]] == [("t", 1)]


def test_expired_batches_are_taken_out(modules: Modules) -> None:
    accumulator = build_accumulator(modules, 2)
    producer = modules.ProducerBase(accumulator)
    producer.produce("t", b"x", partition=0)
    assert accumulator.expired_batches(time.monotonic() - 10) == []
    (old,) = accumulator.expired_batches(time.monotonic() + 1)
    assert old.record_count == 1
    assert drained(accumulator) == []


def test_a_closed_producer_accepts_no_records(modules: Modules) -> None:
    producer = modules.ProducerBase(build_accumulator(modules))
    producer.set_produce_error(RuntimeError("closed"))
    with pytest.raises(RuntimeError):
        producer.produce("t", b"x")


def test_concurrent_producers_lose_and_reorder_nothing(modules: Modules) -> None:
    accumulator = build_accumulator(modules, 4, max_records=10**6, max_bytes=10**9)
    producer = modules.ProducerBase(accumulator)

    def produce(name: int) -> None:
        for index in range(500):
            producer.produce("t", b"%d %d" % (name, index), partition=name)

    threads = [threading.Thread(target=produce, args=(name,)) for name in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    values: dict[int, list[bytes]] = {}
    for batch in drained(accumulator):
        values.setdefault(batch.topic_partition[1], []).extend(
            each.value for each in records(batch)
        )
    assert values == {name: [b"%d %d" % (name, i) for i in range(500)] for name in range(4)}
