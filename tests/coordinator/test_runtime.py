"""The runtime: decide, append, replay, respond when committed; load, resign, timers."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from tests.coordinator.environment import CoordinatorEnvironment

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
from barnabas.coordinator.runtime import MAX_LOAD_WAIT_MS, java_hash
from barnabas.coordinator.shard import CoordinatorShard
from barnabas.coordinator.timers import RETRY_MS
from barnabas.metadata.delta import MetadataDelta
from barnabas.metadata.image import MetadataImage
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.transaction_records import TransactionLogKey, TransactionLogValue
from barnabas.wire.records.batch import read_header

TYPES = RecordTypes([(TransactionLogKey, TransactionLogValue)])


class Counters:
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


def add_one(name: str) -> Callable[[Counters], CoordinatorDecision[int]]:
    def decide(counters: Counters) -> CoordinatorDecision[int]:
        number = counters.numbers.get(name, 0) + 1
        return CoordinatorDecision([put(name, number)], number)

    return decide


@pytest.fixture
def environment() -> CoordinatorEnvironment:
    environment = CoordinatorEnvironment()
    lead(environment)
    return environment


def lead(environment: CoordinatorEnvironment) -> Counters:
    counters: Counters = environment.lead("counters", TYPES, Counters)
    return counters


def code_of(response: PendingResponse[Any]) -> ErrorCode | None:
    error = response.error
    return error.code if isinstance(error, KafkaError) else None


def test_a_decision_is_appended_replayed_and_responded_to(
    environment: CoordinatorEnvironment,
) -> None:
    assert environment.shard.write(add_one("a")).result() == 1
    assert environment.shard.write(add_one("a")).result() == 2
    assert environment.shard.state.numbers == {"a": 2}
    assert [record.value.producer_id for record in environment.log.records(TYPES)] == [1, 2]


def test_a_response_waits_for_the_high_watermark(environment: CoordinatorEnvironment) -> None:
    environment.log.is_committing = False
    response = environment.shard.write(add_one("a"))
    assert not response.is_done
    environment.log.commit()
    assert response.result() == 1


def test_the_next_decision_sees_uncommitted_records(environment: CoordinatorEnvironment) -> None:
    environment.log.is_committing = False
    first, second = environment.shard.write(add_one("a")), environment.shard.write(add_one("a"))
    environment.log.commit(1)
    assert first.result() == 1
    assert not second.is_done


def test_a_read_waits_until_what_it_has_seen_is_committed(
    environment: CoordinatorEnvironment,
) -> None:
    environment.log.is_committing = False
    environment.shard.write(add_one("a"))
    response = environment.shard.read(lambda counters: counters.numbers["a"])
    assert not response.is_done
    environment.log.commit()
    assert response.result() == 1


def test_a_failed_append_leaves_the_state_as_it_was(environment: CoordinatorEnvironment) -> None:
    environment.log.append_error = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS, "Two are missing.")
    response = environment.shard.write(add_one("a"))
    assert code_of(response) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert environment.shard.state.numbers == {}


@pytest.mark.parametrize(
    ("append_code", "client_code"),
    [
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.UNKNOWN_SERVER_ERROR),
        (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.INVALID_PRODUCER_EPOCH),
    ],
)
def test_clients_get_the_coordinator_error_of_a_failed_write(
    environment: CoordinatorEnvironment, append_code: ErrorCode, client_code: ErrorCode
) -> None:
    environment.log.append_error = KafkaError(append_code, "No.")
    assert code_of(environment.shard.write(add_one("a"))) is client_code


def test_a_write_that_is_not_committed_in_time_is_not_acknowledged(
    environment: CoordinatorEnvironment,
) -> None:
    environment.log.is_committing = False
    response = environment.shard.write(add_one("a"))
    environment.advance(5_000)
    assert code_of(response) is ErrorCode.COORDINATOR_NOT_AVAILABLE


def test_a_pending_response_is_completed_by_the_state_machine(
    environment: CoordinatorEnvironment,
) -> None:
    pending: PendingResponse[str] = PendingResponse()
    outcomes: list[KafkaError | None] = []
    environment.log.is_committing = False
    response = environment.shard.write(
        lambda _: CoordinatorDecision([put("a", 1)], pending, on_committed=outcomes.append)
    )
    assert response is pending
    assert outcomes == []
    environment.log.commit()
    assert outcomes == [None]
    assert not pending.is_done


def test_a_failed_append_is_reported_to_the_decision(environment: CoordinatorEnvironment) -> None:
    environment.log.append_error = KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "No.")
    assert codes_of_a_failed_write(environment, "a") == [ErrorCode.NOT_COORDINATOR]


def test_a_key_that_does_not_fit_into_a_record_is_an_error(
    environment: CoordinatorEnvironment,
) -> None:
    assert codes_of_a_failed_write(environment, "a" * 40_000) == [ErrorCode.UNKNOWN_SERVER_ERROR]
    assert code_of(environment.shard.write(add_one("a" * 40_000))) is ErrorCode.UNKNOWN_SERVER_ERROR


def codes_of_a_failed_write(environment: CoordinatorEnvironment, name: str) -> list[ErrorCode]:
    codes: list[ErrorCode] = []

    def on_committed(error: KafkaError | None) -> None:
        assert error is not None
        codes.append(error.code)

    pending: PendingResponse[None] = PendingResponse()
    environment.shard.write(
        lambda _: CoordinatorDecision([put(name, 1)], pending, on_committed=on_committed)
    )
    return codes


def test_effects_are_performed_after_the_append_and_before_the_commit(
    environment: CoordinatorEnvironment,
) -> None:
    environment.log.is_committing = False
    effect = Effect()
    timer = StartTimer("t", 10, lambda *_: CoordinatorDecision([put("time", 1)], None))
    environment.shard.write(lambda _: CoordinatorDecision([put("a", 1)], None, [effect, timer]))
    assert environment.shard.state.performed == [effect]
    assert "t" in environment.shard.timers
    environment.shard.write(lambda _: CoordinatorDecision((), None, [CancelTimer("t")]))
    assert "t" not in environment.shard.timers


def test_a_failed_append_performs_no_effects(environment: CoordinatorEnvironment) -> None:
    environment.log.append_error = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS, "No.")
    timer = StartTimer("t", 10, lambda *_: CoordinatorDecision((), None))
    environment.shard.write(lambda _: CoordinatorDecision([put("a", 1)], None, [Effect(), timer]))
    assert environment.shard.state.performed == []
    assert "t" not in environment.shard.timers


def test_a_timer_that_is_started_only_if_absent_is_not_postponed(
    environment: CoordinatorEnvironment,
) -> None:
    for number in (1, 2):
        records = [put("a", number)]
        environment.shard.timers.start(
            StartTimer(
                "t",
                100,
                lambda *_, records=records: CoordinatorDecision(records, None),
                only_if_absent=True,
            )
        )
        environment.advance(60)
    assert environment.shard.state.numbers == {"a": 1}


def test_many_tombstones_are_split_into_batches_of_bounded_size(
    environment: CoordinatorEnvironment,
) -> None:
    records = [put(f"name-{number:0100d}", None) for number in range(20_000)]
    environment.shard.write(lambda _: CoordinatorDecision(records, None, is_atomic=False)).result()
    assert len(environment.log.batches) > 3
    assert sum(read_header(batch).record_count for batch in environment.log.batches) == 20_000


def test_loading_restores_the_written_state(environment: CoordinatorEnvironment) -> None:
    for name in "abcab":
        environment.shard.write(add_one(name))
    environment.shard.write(lambda _: CoordinatorDecision([put("c", None)], None))
    before = environment.shard.state.numbers
    after = lead(environment)
    assert after.numbers == before == {"a": 2, "b": 2}
    assert after.events == ["loaded"]


def test_records_of_unknown_types_are_skipped(environment: CoordinatorEnvironment) -> None:
    environment.shard.write(add_one("a"))
    environment.log.append(_batch_of_unknown_kind())
    assert lead(environment).numbers == {"a": 1}


def _batch_of_unknown_kind() -> bytearray:
    from barnabas.wire.records.build import Record, build_batch

    return build_batch([Record(0, 0, b"\x00\x63key", b"\x00\x00value", [])])


def test_while_a_shard_loads_requests_get_load_in_progress(
    environment: CoordinatorEnvironment,
) -> None:
    runtime = loading_runtime(environment)
    assert code_of(runtime.write("a", add_one("a"))) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert runtime.is_loading
    while runtime.is_loading:
        environment.advance(1)
    assert runtime.write("n7", add_one("n7")).result() == 8


def test_a_request_for_all_keys_waits_until_all_are_loaded(
    environment: CoordinatorEnvironment,
) -> None:
    runtime = loading_runtime(environment)
    loaded = runtime.when_loaded()
    runtime.on_election(0, 100)  # again, before the first load has ended
    assert not loaded.is_done
    while runtime.is_loading:
        environment.advance(0)
    assert loaded.error is None
    assert runtime.when_loaded().is_done
    environment.advance(MAX_LOAD_WAIT_MS)


def test_a_request_for_all_keys_does_not_wait_forever(
    environment: CoordinatorEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime = loading_runtime(environment)
    monkeypatch.setattr("barnabas.coordinator.runtime.MAX_LOAD_WAIT_MS", 0)
    loaded = runtime.when_loaded()
    environment.advance(0)
    assert code_of(loaded) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


def test_a_request_for_all_keys_does_not_wait_for_a_partition_that_is_led_elsewhere(
    environment: CoordinatorEnvironment,
) -> None:
    runtime = loading_runtime(environment)
    loaded = runtime.when_loaded()
    runtime.on_resignation(0)
    assert loaded.error is None
    assert loaded.is_done


def loading_runtime(environment: CoordinatorEnvironment) -> Any:
    """Returns a runtime that needs several slices to load its partition."""
    for _ in range(3):
        records = [put(f"n{number}", number) for number in range(1_000)]
        environment.shard.write(lambda _, records=records: CoordinatorDecision(records, None))
    environment.runtime.on_election(0, 99)
    return environment.runtime


def test_a_loaded_shard_handles_the_metadata_updates_it_missed(
    environment: CoordinatorEnvironment,
) -> None:
    records = [put(f"n{number}", number) for number in range(2_000)]
    environment.shard.write(lambda _: CoordinatorDecision(records, None))
    runtime = environment.runtime
    runtime.on_election(0, 99)
    environment.advance(1)
    environment.create_topic("meanwhile")
    while runtime.is_loading:
        environment.advance(1)
    assert runtime.shard(0).state.events == ["loaded", "metadata"]


def test_a_short_log_is_loaded_for_the_first_request(environment: CoordinatorEnvironment) -> None:
    environment.shard.write(add_one("a"))
    environment.runtime.on_election(0, 99)
    assert environment.runtime.write("a", add_one("a")).result() == 2


def test_requests_do_not_load_a_long_log_between_the_slices(
    environment: CoordinatorEnvironment,
) -> None:
    runtime = loading_runtime(environment)
    for _ in range(100):  # one slice would be loaded for each
        response = runtime.write("n1", add_one("n1"))
        assert code_of(response) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    while runtime.is_loading:
        environment.advance(0)
    assert runtime.write("n1", add_one("n1")).result() == 2


def test_a_shard_with_a_damaged_log_has_no_coordinator(environment: CoordinatorEnvironment) -> None:
    environment.shard.write(add_one("a"))
    damaged = bytearray(environment.log.batches[0])
    damaged[61] ^= 0xFF
    environment.log.batches[0] = bytes(damaged[:-1]) + b"\xff"
    environment.runtime.on_election(0, 99)
    assert code_of(environment.runtime.write("a", add_one("a"))) is ErrorCode.NOT_COORDINATOR
    assert environment.runtime.failed_count == 1
    environment.runtime.on_resignation(0)
    assert environment.runtime.failed_count == 0


def test_a_shard_that_resigned_rejects_requests(environment: CoordinatorEnvironment) -> None:
    shard = environment.shard
    environment.runtime.on_resignation(0)
    assert shard.state.events == ["loaded", "unloaded"]
    assert code_of(shard.write(add_one("a"))) is ErrorCode.NOT_COORDINATOR
    assert code_of(environment.runtime.write("a", add_one("a"))) is ErrorCode.NOT_COORDINATOR


def test_transactional_records_take_effect_with_the_commit(
    environment: CoordinatorEnvironment,
) -> None:
    producer = ProducerStamp(7, 0)
    environment.shard.write(lambda _: CoordinatorDecision([put("a", 5)], None, producer=producer))
    assert environment.shard.state.numbers == {}
    assert lead(environment).pending == {7: {"a": 5}}
    environment.shard.end_transaction(TransactionMarker(7, 1, 0, True, 2)).result()
    assert environment.shard.state.numbers == {"a": 5}
    assert lead(environment).numbers == {"a": 5}


def test_transactional_records_are_dropped_with_the_abort(
    environment: CoordinatorEnvironment,
) -> None:
    producer = ProducerStamp(7, 0)
    environment.shard.write(lambda _: CoordinatorDecision([put("a", 5)], None, producer=producer))
    environment.shard.end_transaction(TransactionMarker(7, 1, 0, False, 2)).result()
    assert environment.shard.state.numbers == {}
    assert lead(environment).numbers == {}


def test_a_timer_writes_its_decision_as_requests_do(environment: CoordinatorEnvironment) -> None:
    shard = environment.shard
    shard.timers.start(
        StartTimer("soon", 100, lambda *_: CoordinatorDecision([put("time", 1)], None))
    )
    environment.advance(99)
    assert shard.state.numbers == {}
    environment.advance(1)
    assert shard.state.numbers == {"time": 1}


def test_a_restarted_timer_is_postponed_and_a_cancelled_one_never_expires(
    environment: CoordinatorEnvironment,
) -> None:
    shard = environment.shard
    shard.timers.start(StartTimer("a", 100, lambda *_: CoordinatorDecision([put("a", 1)], None)))
    shard.timers.start(StartTimer("b", 100, lambda *_: CoordinatorDecision([put("b", 1)], None)))
    environment.advance(60)
    shard.timers.start(StartTimer("a", 100, lambda *_: CoordinatorDecision([put("a", 2)], None)))
    shard.timers.cancel("b")
    environment.advance(60)
    assert shard.state.numbers == {}
    environment.advance(40)
    assert shard.state.numbers == {"a": 2}


def test_restarting_postpones_a_timer_and_starts_none(environment: CoordinatorEnvironment) -> None:
    shard = environment.shard
    assert not shard.timers.restart("a", 100)
    shard.timers.start(StartTimer("a", 100, lambda *_: CoordinatorDecision([put("a", 1)], None)))
    environment.advance(60)
    assert shard.timers.restart("a", 70)
    environment.advance(69)
    assert shard.state.numbers == {}
    environment.advance(1)
    assert shard.state.numbers == {"a": 1}
    assert not shard.timers.restart("a", 100)


def test_restarting_leaves_a_timer_that_retries_its_write(
    environment: CoordinatorEnvironment,
) -> None:
    environment.log.append_error = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS, "Not now.")
    timers = environment.shard.timers
    timers.start(StartTimer("a", 100, lambda *_: CoordinatorDecision([put("a", 1)], None)))
    environment.advance(100)
    assert "a" in timers
    assert not timers.restart("a", 100_000)
    environment.log.append_error = None
    environment.advance(RETRY_MS)
    assert environment.shard.state.numbers == {"a": 1}


def test_a_timers_decision_is_retried_until_it_is_written(
    environment: CoordinatorEnvironment,
) -> None:
    environment.log.append_error = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS, "Not now.")
    environment.shard.timers.start(
        StartTimer("a", 100, lambda *_: CoordinatorDecision([put("a", 1)], None))
    )
    environment.advance(1_000)
    assert environment.shard.state.numbers == {}
    environment.log.append_error = None
    environment.advance(1_000)
    assert environment.shard.state.numbers == {"a": 1}


def test_timers_are_cancelled_with_the_leadership(environment: CoordinatorEnvironment) -> None:
    environment.shard.timers.start(
        StartTimer("a", 100, lambda *_: CoordinatorDecision([put("a", 1)], None))
    )
    environment.runtime.on_resignation(0)
    environment.advance(1_000)
    assert environment.log.batches == []


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
def test_keys_are_hashed_to_kafkas_partitions(key: str, hash_code: int) -> None:
    assert java_hash(key) == hash_code
