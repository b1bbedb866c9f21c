"""The runtime: decide, append, replay, answer when committed; load, resign, time."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from tests.coordinator.world import World

from barnabas.coordinator.decision import (
    CancelTimer,
    CoordinatorDecision,
    Effect,
    ProducerStamp,
    StartTimer,
)
from barnabas.coordinator.pending_response import PendingResponse
from barnabas.coordinator.ports import TransactionMarker
from barnabas.coordinator.records import CoordinatorRecord, RecordTypes
from barnabas.coordinator.runtime import java_hash
from barnabas.coordinator.shard import CoordinatorShard
from barnabas.metadata.delta import MetadataDelta
from barnabas.metadata.image import MetadataImage
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.transaction_records import TransactionLogKey, TransactionLogValue
from barnabas.wire.records.batch import read_header

TYPES = RecordTypes([(TransactionLogKey, TransactionLogValue)])


class Ledger:
    """The simplest state machine: a number for each name."""

    def __init__(self, shard: CoordinatorShard[Any]) -> None:
        self.shard = shard
        self.numbers: dict[str, int] = {}
        self.pending: dict[int, dict[str, int]] = {}
        self.events: list[str] = []
        self.performed: list[Effect] = []

    def replay(self, record: CoordinatorRecord, producer_id: int) -> None:
        numbers = self.numbers if producer_id < 0 else self.pending.setdefault(producer_id, {})
        if record.value is None:
            numbers.pop(record.key.transactional_id, None)
        else:
            numbers[record.key.transactional_id] = record.value.producer_id

    def replay_end(self, producer_id: int, committed: bool) -> None:
        pending = self.pending.pop(producer_id, {})
        if committed:
            self.numbers |= pending

    def on_loaded(self, context: Any) -> Sequence[Effect]:
        self.events.append("loaded")
        return ()

    def on_unloaded(self) -> None:
        self.events.append("unloaded")

    def on_metadata_update(
        self, delta: MetadataDelta, image: MetadataImage, context: Any
    ) -> Sequence[Effect]:
        self.events.append("metadata")
        return ()

    def perform(self, effect: Effect, context: Any) -> None:
        self.performed.append(effect)


def put(name: str, number: int | None) -> CoordinatorRecord:
    value = None if number is None else TransactionLogValue(producer_id=number)
    return CoordinatorRecord(TransactionLogKey(transactional_id=name), value)


def add_one(name: str) -> Callable[[Ledger], CoordinatorDecision[int]]:
    def decide(ledger: Ledger) -> CoordinatorDecision[int]:
        number = ledger.numbers.get(name, 0) + 1
        return CoordinatorDecision([put(name, number)], number)

    return decide


@pytest.fixture
def world() -> World:
    world = World()
    lead(world)
    return world


def lead(world: World) -> Ledger:
    ledger: Ledger = world.lead("ledger", TYPES, Ledger)
    return ledger


def code_of(answer: PendingResponse[Any]) -> ErrorCode | None:
    error = answer.error
    return error.code if isinstance(error, KafkaError) else None


def test_a_decision_is_written_replayed_and_answered(world: World) -> None:
    assert world.shard.write(add_one("a")).result() == 1
    assert world.shard.write(add_one("a")).result() == 2
    assert world.shard.state.numbers == {"a": 2}
    assert [record.value.producer_id for record in world.log.records(TYPES)] == [1, 2]


def test_an_answer_waits_for_the_high_watermark(world: World) -> None:
    world.log.committing = False
    answer = world.shard.write(add_one("a"))
    assert not answer.is_done
    world.log.commit()
    assert answer.result() == 1


def test_the_next_decision_sees_what_is_written_but_not_committed(world: World) -> None:
    world.log.committing = False
    first, second = world.shard.write(add_one("a")), world.shard.write(add_one("a"))
    world.log.commit(1)
    assert first.result() == 1
    assert not second.is_done


def test_a_read_does_not_tell_of_what_may_still_be_lost(world: World) -> None:
    world.log.committing = False
    world.shard.write(add_one("a"))
    answer = world.shard.read(lambda ledger: ledger.numbers["a"])
    assert not answer.is_done
    world.log.commit()
    assert answer.result() == 1


def test_a_refused_append_leaves_the_state_as_it_was(world: World) -> None:
    world.log.refusal = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS, "Two are missing.")
    answer = world.shard.write(add_one("a"))
    assert code_of(answer) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert world.shard.state.numbers == {}


@pytest.mark.parametrize(
    ("refused", "told"),
    [
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.UNKNOWN_SERVER_ERROR),
        (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.INVALID_PRODUCER_EPOCH),
    ],
)
def test_clients_hear_of_failed_writes_in_a_coordinators_words(
    world: World, refused: ErrorCode, told: ErrorCode
) -> None:
    world.log.refusal = KafkaError(refused, "No.")
    assert code_of(world.shard.write(add_one("a"))) is told


def test_a_write_that_is_not_committed_in_time_is_not_acknowledged(world: World) -> None:
    world.log.committing = False
    answer = world.shard.write(add_one("a"))
    world.advance(5_000)
    assert code_of(answer) is ErrorCode.COORDINATOR_NOT_AVAILABLE


def test_a_pending_response_is_completed_by_the_state_machine(world: World) -> None:
    pending: PendingResponse[str] = PendingResponse()
    outcomes: list[KafkaError | None] = []
    world.log.committing = False
    response = world.shard.write(
        lambda _: CoordinatorDecision([put("a", 1)], pending, on_committed=outcomes.append)
    )
    assert response is pending
    assert outcomes == []
    world.log.commit()
    assert outcomes == [None]
    assert not pending.is_done


def test_a_failed_append_is_reported_to_the_decision(world: World) -> None:
    world.log.refusal = KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "No.")
    assert codes_of_a_failed_write(world, "a") == [ErrorCode.NOT_COORDINATOR]


def test_a_key_that_does_not_fit_into_a_record_is_an_error(world: World) -> None:
    assert codes_of_a_failed_write(world, "a" * 40_000) == [ErrorCode.UNKNOWN_SERVER_ERROR]
    assert code_of(world.shard.write(add_one("a" * 40_000))) is ErrorCode.UNKNOWN_SERVER_ERROR


def codes_of_a_failed_write(world: World, name: str) -> list[ErrorCode]:
    codes: list[ErrorCode] = []

    def on_committed(error: KafkaError | None) -> None:
        assert error is not None
        codes.append(error.code)

    pending: PendingResponse[None] = PendingResponse()
    world.shard.write(
        lambda _: CoordinatorDecision([put(name, 1)], pending, on_committed=on_committed)
    )
    return codes


def test_effects_are_performed_after_the_append_and_before_the_commit(world: World) -> None:
    world.log.committing = False
    effect = Effect()
    timer = StartTimer("t", 10, lambda *_: CoordinatorDecision([put("time", 1)], None))
    world.shard.write(lambda _: CoordinatorDecision([put("a", 1)], None, [effect, timer]))
    assert world.shard.state.performed == [effect]
    assert "t" in world.shard.timers
    world.shard.write(lambda _: CoordinatorDecision((), None, [CancelTimer("t")]))
    assert "t" not in world.shard.timers


def test_a_failed_append_performs_no_effects(world: World) -> None:
    world.log.refusal = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS, "No.")
    timer = StartTimer("t", 10, lambda *_: CoordinatorDecision((), None))
    world.shard.write(lambda _: CoordinatorDecision([put("a", 1)], None, [Effect(), timer]))
    assert world.shard.state.performed == []
    assert "t" not in world.shard.timers


def test_a_timer_that_is_started_only_if_absent_is_not_postponed(world: World) -> None:
    for number in (1, 2):
        records = [put("a", number)]
        world.shard.timers.start(
            StartTimer(
                "t",
                100,
                lambda *_, records=records: CoordinatorDecision(records, None),
                only_if_absent=True,
            )
        )
        world.advance(60)
    assert world.shard.state.numbers == {"a": 1}


def test_many_tombstones_are_cut_into_batches_of_bounded_size(world: World) -> None:
    records = [put(f"name-{number:0100d}", None) for number in range(20_000)]
    world.shard.write(lambda _: CoordinatorDecision(records, None, is_atomic=False)).result()
    assert len(world.log.batches) > 3
    assert sum(read_header(batch).record_count for batch in world.log.batches) == 20_000


def test_loading_brings_back_what_was_written(world: World) -> None:
    for name in "abcab":
        world.shard.write(add_one(name))
    world.shard.write(lambda _: CoordinatorDecision([put("c", None)], None))
    before = world.shard.state.numbers
    after = lead(world)
    assert after.numbers == before == {"a": 2, "b": 2}
    assert after.events == ["loaded"]


def test_records_of_a_kind_from_the_future_are_passed_over(world: World) -> None:
    world.shard.write(add_one("a"))
    world.log.append(_batch_of_unknown_kind())
    assert lead(world).numbers == {"a": 1}


def _batch_of_unknown_kind() -> bytearray:
    from barnabas.wire.records.build import Record, build_batch

    return build_batch([Record(0, 0, b"\x00\x63key", b"\x00\x00value", [])])


def test_while_it_loads_requests_are_told_to_try_again(world: World) -> None:
    for _ in range(3):
        records = [put(f"n{number}", number) for number in range(1_000)]
        world.shard.write(lambda _, records=records: CoordinatorDecision(records, None))
    runtime = world.runtime
    runtime.on_election(0, 99)
    assert code_of(runtime.write("a", add_one("a"))) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert runtime.is_loading
    while runtime.is_loading:
        world.advance(1)
    assert runtime.write("n7", add_one("n7")).result() == 8


def test_a_shard_hears_after_loading_what_changed_meanwhile(world: World) -> None:
    records = [put(f"n{number}", number) for number in range(2_000)]
    world.shard.write(lambda _: CoordinatorDecision(records, None))
    runtime = world.runtime
    runtime.on_election(0, 99)
    world.advance(1)
    world.create_topic("meanwhile")
    while runtime.is_loading:
        world.advance(1)
    assert runtime.shard(0).state.events == ["loaded", "metadata"]


def test_a_short_log_is_loaded_for_the_first_who_asks(world: World) -> None:
    world.shard.write(add_one("a"))
    world.runtime.on_election(0, 99)
    assert world.runtime.write("a", add_one("a")).result() == 2


def test_a_damaged_log_has_no_coordinator_and_the_others_go_on(world: World) -> None:
    world.shard.write(add_one("a"))
    damaged = bytearray(world.log.batches[0])
    damaged[61] ^= 0xFF
    world.log.batches[0] = bytes(damaged[:-1]) + b"\xff"
    world.runtime.on_election(0, 99)
    assert code_of(world.runtime.write("a", add_one("a"))) is ErrorCode.NOT_COORDINATOR
    assert world.runtime.failed_count == 1
    world.runtime.on_resignation(0)
    assert world.runtime.failed_count == 0


def test_who_resigned_coordinates_no_more(world: World) -> None:
    shard = world.shard
    world.runtime.on_resignation(0)
    assert shard.state.events == ["loaded", "unloaded"]
    assert code_of(shard.write(add_one("a"))) is ErrorCode.NOT_COORDINATOR
    assert code_of(world.runtime.write("a", add_one("a"))) is ErrorCode.NOT_COORDINATOR


def test_what_a_transaction_writes_counts_when_it_is_committed(world: World) -> None:
    producer = ProducerStamp(7, 0)
    world.shard.write(lambda _: CoordinatorDecision([put("a", 5)], None, producer=producer))
    assert world.shard.state.numbers == {}
    assert lead(world).pending == {7: {"a": 5}}
    world.shard.end_transaction(TransactionMarker(7, 1, 0, True, 2)).result()
    assert world.shard.state.numbers == {"a": 5}
    assert lead(world).numbers == {"a": 5}


def test_what_a_transaction_writes_never_was_when_it_is_aborted(world: World) -> None:
    producer = ProducerStamp(7, 0)
    world.shard.write(lambda _: CoordinatorDecision([put("a", 5)], None, producer=producer))
    world.shard.end_transaction(TransactionMarker(7, 1, 0, False, 2)).result()
    assert world.shard.state.numbers == {}
    assert lead(world).numbers == {}


def test_time_decides_as_requests_do(world: World) -> None:
    shard = world.shard
    shard.timers.start(
        StartTimer("soon", 100, lambda *_: CoordinatorDecision([put("time", 1)], None))
    )
    world.advance(99)
    assert shard.state.numbers == {}
    world.advance(1)
    assert shard.state.numbers == {"time": 1}


def test_an_alarm_set_again_is_put_off_and_one_cancelled_never_rings(world: World) -> None:
    shard = world.shard
    shard.timers.start(StartTimer("a", 100, lambda *_: CoordinatorDecision([put("a", 1)], None)))
    shard.timers.start(StartTimer("b", 100, lambda *_: CoordinatorDecision([put("b", 1)], None)))
    world.advance(60)
    shard.timers.start(StartTimer("a", 100, lambda *_: CoordinatorDecision([put("a", 2)], None)))
    shard.timers.cancel("b")
    world.advance(60)
    assert shard.state.numbers == {}
    world.advance(40)
    assert shard.state.numbers == {"a": 2}


def test_what_time_decided_is_tried_again_until_it_is_written(world: World) -> None:
    world.log.refusal = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS, "Not now.")
    world.shard.timers.start(
        StartTimer("a", 100, lambda *_: CoordinatorDecision([put("a", 1)], None))
    )
    world.advance(1_000)
    assert world.shard.state.numbers == {}
    world.log.refusal = None
    world.advance(1_000)
    assert world.shard.state.numbers == {"a": 1}


def test_alarms_end_with_the_leadership(world: World) -> None:
    world.shard.timers.start(
        StartTimer("a", 100, lambda *_: CoordinatorDecision([put("a", 1)], None))
    )
    world.runtime.on_resignation(0)
    world.advance(1_000)
    assert world.log.batches == []


@pytest.mark.parametrize(
    ("key", "hash_code"),
    [
        ("", 0),
        ("a", 97),
        ("my-group", 1906497762),
        ("polygenelubricants", 0),
        ("Überweisung", 2092342301),
        ("𝄞", 1772394),
    ],
)
def test_keys_are_placed_as_kafka_places_them(key: str, hash_code: int) -> None:
    assert java_hash(key) == hash_code
