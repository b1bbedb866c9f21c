"""Records go into batches as they come: compiled, and as the Python that the file also is."""

import threading
import time
from typing import Any

import pytest
from tests.uncompiled import from_source

from barnabas.client import _message as compiled_message
from barnabas.client.producer import _accumulator as compiled_accumulator
from barnabas.client.producer import _batch as compiled_batch
from barnabas.client.producer import _intake as compiled_intake
from barnabas.client.producer import _queues as compiled_queues
from barnabas.client.producer.sealing import Seal
from barnabas.wire.records.compression import Codec
from barnabas.wire.records.read import read_records


class Rooms:
    def __init__(self, batch: Any, accumulator: Any, intake: Any) -> None:
        self.Batch = batch.Batch
        self.Accumulator = accumulator.Accumulator
        self.Intake = intake.Intake


@pytest.fixture(params=["compiled", "plain"], scope="module")
def rooms(request: pytest.FixtureRequest) -> Rooms:
    if request.param == "compiled":
        if not compiled_accumulator.COMPILED:
            pytest.skip("nothing is compiled here")
        return Rooms(compiled_batch, compiled_accumulator, compiled_intake)
    message = from_source(compiled_message)
    message.__name__ = compiled_message.__name__
    batch = from_source(compiled_batch, message=message)
    batch.__name__ = compiled_batch.__name__
    queues = from_source(compiled_queues, batch=batch)
    queues.__name__ = compiled_queues.__name__
    accumulator = from_source(compiled_accumulator, message=message, batch=batch, queues=queues)
    accumulator.__name__ = compiled_accumulator.__name__
    intake = from_source(compiled_intake, message=message, accumulator=accumulator)
    return Rooms(batch, accumulator, intake)


def accumulator(rooms: Rooms, partitions: int = 1, **settings: Any) -> Any:
    made = rooms.Accumulator(
        settings.pop("wake", lambda: None),
        **{
            "largest_records": 1000,
            "largest_bytes": 1_000_000,
            "largest_record": 10_000,
            "batch_bytes": 1050,
            "batch_records": 100,
            "linger_s": 1000.0,
            **settings,
        },
    )
    if partitions:
        made.learn("t", partitions, range(partitions))
    return made


def drained(held: Any) -> list[Any]:
    """All batches, in the order they would go."""
    held.flush(True)
    batches = []
    for queue in held.ready(time.monotonic())[0]:
        while (batch := held.take(queue)) is not None:
            batches.append(batch)
    return batches


def records(batch: Any) -> list[Any]:
    Seal().put(batch)
    return read_records(batch.records)


def test_a_record_is_encoded_with_all_it_has(rooms: Rooms) -> None:
    held = accumulator(rooms)
    intake = rooms.Intake(held)
    intake.produce("t", b"value", b"key", timestamp=1234, headers=[("a", b"1"), ("b", None)])
    intake.produce("t", "wörd", "kéy", timestamp=1200, headers={"c": "text"})
    intake.produce("t", None)
    (batch,) = drained(held)
    first, second, third = records(batch)
    assert (first.timestamp, first.key, first.value) == (1234, b"key", b"value")
    assert first.headers == [("a", b"1"), ("b", None)]
    assert (second.timestamp, second.key, second.value) == (1200, "kéy".encode(), "wörd".encode())
    assert second.headers == [("c", b"text")]
    assert (third.key, third.value, third.headers) == (None, None, [])
    assert abs(third.timestamp - time.time() * 1000) < 60_000


@pytest.mark.parametrize("codec", list(Codec))
def test_a_closed_batch_reads_back_in_every_codec(rooms: Rooms, codec: Codec) -> None:
    held = accumulator(rooms)
    intake = rooms.Intake(held)
    values = [b"%d" % i * 20 for i in range(20)]
    for value in values:
        intake.produce("t", value)
    seal = Seal(codec)
    read = []
    for batch in drained(held):
        seal.put(batch)
        read += [record.value for record in read_records(batch.records)]
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
def test_what_is_no_record_is_a_type_error(rooms: Rooms, arguments: dict[str, Any]) -> None:
    if arguments.keys() & {"partition", "timestamp"} and rooms.Intake.__module__.startswith(
        "plain"
    ):
        pytest.skip("types of numbers are C's to check")
    intake = rooms.Intake(accumulator(rooms))
    with pytest.raises(TypeError):
        intake.produce(**{"topic": "t", **arguments})


def test_a_batch_is_full_by_its_bytes_and_by_its_records(rooms: Rooms) -> None:
    held = accumulator(rooms)
    intake = rooms.Intake(held)
    for _ in range(10):
        intake.produce("t", b"x" * 300)
    assert [batch.record_count for batch in drained(held)] == [3, 3, 3, 1]
    held = accumulator(rooms, batch_records=4)
    intake = rooms.Intake(held)
    for _ in range(10):
        intake.produce("t", b"x")
    assert [batch.record_count for batch in drained(held)] == [4, 4, 2]


def test_a_record_larger_than_a_batch_has_one_to_itself(rooms: Rooms) -> None:
    held = accumulator(rooms)
    intake = rooms.Intake(held)
    for size in (10, 5000, 10):
        intake.produce("t", b"x" * size)
    batches = drained(held)
    assert [len(record.value) for batch in batches for record in records(batch)] == [10, 5000, 10]
    assert [batch.record_count for batch in batches] == [1, 1, 1]


def test_a_record_beyond_the_bound_is_refused(rooms: Rooms) -> None:
    from barnabas.client.errors import KafkaError, KafkaException

    held = accumulator(rooms)
    intake = rooms.Intake(held)
    with pytest.raises(KafkaException) as refused:
        intake.produce("t", b"x" * 10_001)
    assert refused.value.args[0].code() == KafkaError.MSG_SIZE_TOO_LARGE
    assert held.held_records == 0


def test_a_partition_that_does_not_exist_is_refused(rooms: Rooms) -> None:
    from barnabas.client.errors import KafkaError, KafkaException

    intake = rooms.Intake(accumulator(rooms, 2))
    with pytest.raises(KafkaException) as refused:
        intake.produce("t", b"x", partition=2)
    assert refused.value.args[0].code() == KafkaError._UNKNOWN_PARTITION


def test_a_full_buffer_is_a_buffer_error_and_has_room_again_later(rooms: Rooms) -> None:
    held = accumulator(rooms, largest_records=2)
    intake = rooms.Intake(held)
    intake.produce("t", b"1")
    intake.produce("t", b"2")
    with pytest.raises(BufferError):
        intake.produce("t", b"3")
    (batch,) = drained(held)
    with pytest.raises(BufferError):  # it was taken, and is not delivered yet
        intake.produce("t", b"3")
    held.let_go(batch)
    intake.produce("t", b"3")
    assert held.held_records == 1


def test_bytes_are_bounded_as_well(rooms: Rooms) -> None:
    held = accumulator(rooms, largest_bytes=1000)
    intake = rooms.Intake(held)
    intake.produce("t", b"x" * 900)
    with pytest.raises(BufferError):
        intake.produce("t", b"x" * 200)
    for batch in drained(held):
        held.let_go(batch)
    assert held.held_bytes == 0


def test_encoded_batches_are_bounded_too_but_one_always_fits(rooms: Rooms) -> None:
    held = accumulator(rooms, largest_records=10)
    encoded = [rooms.Batch.encoded("t", 0, bytearray(100), 20, 0, 0, 0.0, None) for _ in range(2)]
    held.append_encoded("t", 0, encoded[0])
    with pytest.raises(BufferError):
        held.append_encoded("t", 0, encoded[1])
    held.let_go(encoded[0])
    held.append_encoded("t", 0, encoded[1])
    assert held.held_records == 20


def test_who_found_no_room_is_told_when_a_quarter_is_free(rooms: Rooms) -> None:
    held = accumulator(rooms, largest_records=8, batch_records=1)
    intake = rooms.Intake(held)
    for _ in range(8):
        intake.produce("t", b"x")
    batches = drained(held)
    with pytest.raises(BufferError):
        intake.produce("t", b"x")
    assert [held.let_go(batch) for batch in batches] == [False, True] + 6 * [False]


def test_produce_waits_for_room_where_it_was_told_how(rooms: Rooms) -> None:
    held = accumulator(rooms, largest_records=1)

    def make_room(attempt: Any) -> None:
        for batch in drained(held):
            held.let_go(batch)
        attempt()

    intake = rooms.Intake(held, make_room=make_room)
    intake.produce("t", b"1")
    intake.produce("t", b"2")
    assert held.held_records == 1


def test_records_of_an_unknown_topic_wait_for_it_in_their_order(rooms: Rooms) -> None:
    held = accumulator(rooms, 0)
    intake = rooms.Intake(held)
    for index in range(5):
        intake.produce("t", b"%d" % index, headers={"n": str(index)})
    assert held.asked_for() == ["t"]
    assert held.held_records == 5
    assert drained(held) == []
    assert held.learn("t", 1, [0]) == []
    (batch,) = drained(held)
    assert [record.value for record in records(batch)] == [b"0", b"1", b"2", b"3", b"4"]
    held.let_go(batch)
    assert (held.held_records, held.held_bytes) == (0, 0)


def test_records_of_a_topic_that_stays_unknown_are_given_up(rooms: Rooms) -> None:
    told: list[Any] = []
    held = accumulator(rooms, 0)
    intake = rooms.Intake(held)
    intake.produce("t", b"1", on_delivery=lambda error, message: told.append((error, message)))
    intake.produce("t", b"2")
    batch = held.give_up("t")
    assert batch.record_count == 2
    assert batch.resolve("error", -1, -1, False)
    assert batch.report() == 1
    assert told[0][0] == "error"
    assert told[0][1].value() == b"1"
    held.let_go(batch)
    assert (held.held_records, held.held_bytes) == (0, 0)


def test_a_waiting_record_that_names_a_missing_partition_comes_back(rooms: Rooms) -> None:
    held = accumulator(rooms, 0)
    intake = rooms.Intake(held)
    intake.produce("t", b"1", partition=5)
    intake.produce("t", b"2", partition=0)
    (misfit,) = held.learn("t", 1, [0])
    assert misfit.record_count == 1
    assert len(drained(held)) == 1


def test_reports_bring_offsets_and_run_in_order(rooms: Rooms) -> None:
    told: list[Any] = []
    held = accumulator(rooms)
    intake = rooms.Intake(held)
    for index in range(6):
        wanted = None if index == 3 else lambda error, message: told.append(message)
        intake.produce("t", b"%d" % index, on_delivery=wanted)
    (batch,) = drained(held)
    assert batch.resolve(None, 100, -1, False)
    assert batch.report() == 5
    assert [message.offset() for message in told] == [100, 101, 102, 104, 105]
    assert [message.value() for message in told] == [b"0", b"1", b"2", b"4", b"5"]
    assert all(message.latency() >= 0 for message in told)


def test_a_callback_that_raises_holds_up_no_other(rooms: Rooms) -> None:
    told: list[bytes] = []

    def report(_: object, message: Any) -> None:
        told.append(message.value())
        if message.value() == b"1":
            raise LookupError("from a callback")

    held = accumulator(rooms)
    intake = rooms.Intake(held, report, None)
    for index in range(3):
        intake.produce("t", b"%d" % index)
    (batch,) = drained(held)
    batch.resolve(None, 0, -1, False)
    with pytest.raises(LookupError):
        batch.report()
    assert batch.report() == 1
    assert told == [b"0", b"1", b"2"]


def test_only_errors_are_reported_if_that_was_asked_for(rooms: Rooms) -> None:
    held = accumulator(rooms)
    intake = rooms.Intake(held, lambda *_: None, None)
    intake.produce("t", b"x")
    (batch,) = drained(held)
    assert not batch.resolve(None, 0, -1, True)


def test_keys_decide_the_partition_and_records_without_one_stick(rooms: Rooms) -> None:
    from barnabas.client.producer._partitioners import murmur2

    held = accumulator(rooms, 8, hashed=murmur2, sticky_ms=10**9)
    intake = rooms.Intake(held)
    for index in range(50):
        intake.produce("t", b"x", b"key%d" % (index % 5))
    for batch in drained(held):
        partitions = {murmur2(record.key) % 8 for record in records(batch)}
        assert partitions == {batch.place[1]}
    for _ in range(5):
        intake.produce("t", b"x")
    assert len(drained(held)) == 1


def test_sticking_ends_after_a_batch_worth_of_bytes(rooms: Rooms) -> None:
    held = accumulator(rooms, 16, sticky_ms=10**9)
    intake = rooms.Intake(held)
    for _ in range(400):
        intake.produce("t", b"x" * 100)
    batches = drained(held)
    assert len({batch.place[1] for batch in batches}) > 4
    assert sum(batch.record_count for batch in batches) == 400


def test_partitions_without_a_leader_or_with_a_slow_one_are_passed_over(rooms: Rooms) -> None:
    held = accumulator(rooms, 0, sticky_ms=0)
    held.learn("t", 4, [1, 3])
    intake = rooms.Intake(held)
    for _ in range(100):
        intake.produce("t", b"x")
    queues = held.ready(time.monotonic() + 2000)[0]
    assert {queue.place[1] for queue in queues} == {1, 3}
    held.shun(next(queue for queue in queues if queue.place[1] == 3), True)
    drained(held)
    for _ in range(50):
        intake.produce("t", b"x")
    assert {batch.place[1] for batch in drained(held)} == {1}


def test_a_partitioner_of_ones_own_is_asked_once_partitions_are_known(rooms: Rooms) -> None:
    asked: list[tuple[str, bytes | None, int]] = []

    def choose(topic: str, key: bytes | None, count: int) -> int:
        asked.append((topic, key, count))
        return 2 if key == b"two" else -1

    held = accumulator(rooms, 0, choose=choose)
    intake = rooms.Intake(held)
    intake.produce("t", b"x", b"two")
    assert asked == []
    held.learn("t", 3, [0, 1, 2])
    intake.produce("t", b"x", b"two")
    assert asked == [("t", b"two", 3)] * 2
    assert {batch.place[1] for batch in drained(held)} == {2}
    bad = rooms.Intake(accumulator(rooms, 3, choose=lambda *_: 9))
    with pytest.raises(ValueError, match="chose 9"):
        bad.produce("t", b"x")


def test_the_loop_is_woken_by_the_first_record_and_by_full_batches_alone(rooms: Rooms) -> None:
    rings: list[int] = []
    held = accumulator(rooms, wake=lambda: rings.append(1))
    intake = rooms.Intake(held)
    for _ in range(5):
        intake.produce("t", b"x")
    assert len(rings) == 1
    held.ready(time.monotonic())  # it looks, and sets its timer
    intake.produce("t", b"x")
    assert len(rings) == 1
    for _ in range(20):
        intake.produce("t", b"x" * 100)
    assert len(rings) == 2


def test_batches_are_due_when_they_have_lingered_or_are_full(rooms: Rooms) -> None:
    held = accumulator(rooms, 2, linger_s=5.0)
    intake = rooms.Intake(held)
    began = time.monotonic()
    intake.produce("t", b"x", partition=0)
    queues, due_s = held.ready(began)
    assert queues == []
    assert began <= due_s - 5 <= time.monotonic()
    assert [queue.place for queue in held.ready(due_s)[0]] == [("t", 0)]
    for _ in range(4):
        intake.produce("t", b"x" * 300, partition=1)
    assert [queue.place for queue in held.ready(began)[0]] == [("t", 1)]


def test_what_is_too_old_is_taken_out(rooms: Rooms) -> None:
    held = accumulator(rooms, 2)
    intake = rooms.Intake(held)
    intake.produce("t", b"x", partition=0)
    assert held.expired(time.monotonic() - 10) == []
    (old,) = held.expired(time.monotonic() + 1)
    assert old.record_count == 1
    assert drained(held) == []


def test_a_closed_producer_takes_nothing(rooms: Rooms) -> None:
    intake = rooms.Intake(accumulator(rooms))
    intake.refuse(RuntimeError("closed"))
    with pytest.raises(RuntimeError):
        intake.produce("t", b"x")


def test_threads_lose_nothing_and_mix_nothing_up(rooms: Rooms) -> None:
    held = accumulator(rooms, 4, largest_records=10**6, largest_bytes=10**9)
    intake = rooms.Intake(held)

    def produce(name: int) -> None:
        for index in range(500):
            intake.produce("t", b"%d %d" % (name, index), partition=name)

    threads = [threading.Thread(target=produce, args=(name,)) for name in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    values: dict[int, list[bytes]] = {}
    for batch in drained(held):
        values.setdefault(batch.place[1], []).extend(each.value for each in records(batch))
    assert values == {name: [b"%d %d" % (name, i) for i in range(500)] for name in range(4)}
