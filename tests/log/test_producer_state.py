"""However a log comes back, it knows of its producers what it knew before."""

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.log.log_test_directory import NOW_MS, LogTestDirectory, batch, marker, write

from barnabas.log import Log, LogConfig
from barnabas.log.maintenance import LogMaintenance
from barnabas.log.producers import replay
from barnabas.log.producers.snapshots import CorruptSnapshot, decode, encode

CONFIG = LogConfig(segment_bytes=600, index_interval_bytes=100)

# (producer, "plain" | "write" | "commit" | "abort" | "roll", number of records)
actions = st.lists(
    st.tuples(
        st.integers(1, 4),
        st.sampled_from(["plain", "write", "write", "commit", "abort"]),
        st.integers(1, 4),
    ),
    min_size=1,
    max_size=40,
)
Actions = list[tuple[int, str, int]]

ProducerStates = tuple[dict[int, tuple[object, ...]], int | None, list[tuple[int, int]]]


def producer_state_of(log: Log) -> ProducerStates:
    """Returns the observable state: producers, open transactions, aborted transactions."""
    producers = {
        producer.producer_id: (
            producer.epoch,
            producer.last_sequence,
            producer.last_offset,
            producer.last_timestamp,
            producer.coordinator_epoch,
            producer.transaction_first_offset,
            *(tuple(batch[:4]) for batch in producer.batches),
        )
        for producer in log.active_producers()
    }
    aborted = sorted(log.aborted_transactions(0, log.log_end_offset))
    return producers, log.producers.first_undecided_offset, aborted


def perform(
    log: Log, actions: Actions, after_each: Callable[[int], None] = lambda number: None
) -> None:
    """Plays the actions of some producers."""
    sequences: dict[int, int] = {}
    for number, (producer_id, action, count) in enumerate(actions):
        sequence = sequences.get(producer_id, 0)
        is_open = any(
            producer.producer_id == producer_id and producer.transaction_first_offset >= 0
            for producer in log.active_producers()
        )
        if action in ("commit", "abort"):
            valid = marker(producer_id, 0, committed=action == "commit", coordinator_epoch=number)
        else:
            valid = batch(
                [b"v"] * count,
                producer_id=producer_id,
                epoch=0,
                sequence=sequence,
                transactional=is_open or action == "write",
                timestamp=NOW_MS + number,
            )
            sequences[producer_id] = sequence + count
        write(log, valid, from_client=not valid.header.is_control)
        after_each(number)


@given(actions)
@settings(max_examples=40, deadline=None)
def test_producer_state_is_the_same_after_a_clean_shutdown(
    new_log_dir: Callable[[], LogTestDirectory], actions: Actions
) -> None:
    log_dir = new_log_dir()
    log = log_dir.create(CONFIG)
    perform(log, actions)
    before = producer_state_of(log)
    assert producer_state_of(log_dir.stop_and_reopen(CONFIG)) == before


@given(actions, st.integers(0, 40))
@settings(max_examples=40, deadline=None)
def test_producer_state_is_the_same_after_a_crash(
    new_log_dir: Callable[[], LogTestDirectory], actions: Actions, flushed: int
) -> None:
    log_dir = new_log_dir()
    log = log_dir.create(CONFIG)

    def flush_once(number: int) -> None:
        if number == flushed:
            log.flusher.flush()
            log_dir.directory.checkpoint()

    perform(log, actions, flush_once)
    before = producer_state_of(log)
    assert producer_state_of(log_dir.kill_and_reopen(CONFIG)) == before


@given(actions, st.data())
@settings(max_examples=40, deadline=None)
def test_producer_state_is_the_same_after_a_truncation(
    new_log_dir: Callable[[], LogTestDirectory], actions: Actions, data: st.DataObject
) -> None:
    log = new_log_dir().create(CONFIG)
    states = {0: producer_state_of(log)}

    def note(number: int) -> None:
        states[log.log_end_offset] = producer_state_of(log)

    perform(log, actions, note)
    offset = data.draw(st.sampled_from(sorted(states)))
    log.truncate_to(offset)
    assert log.log_end_offset == offset
    assert producer_state_of(log) == states[offset]


def test_truncating_the_last_batches_does_not_read_the_whole_log(
    log_dir: LogTestDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = log_dir.create(LogConfig())
    perform(log, [(1, "plain", 1), (2, "plain", 1)] * 10)
    monkeypatch.setattr(
        LogMaintenance, "reload_producers", lambda _: pytest.fail("the whole log was read")
    )
    log.truncate_to(15)
    assert {each.producer_id: each.last_offset for each in log.active_producers()} == {1: 14, 2: 13}


def test_batches_far_before_a_truncation_are_not_forgotten(
    log_dir: LogTestDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Large batches: of the five that may be sent again, one alone is near."""
    monkeypatch.setattr(replay, "SEARCHED_BYTES", 1)
    log = log_dir.create(LogConfig(index_interval_bytes=1))
    perform(log, [(1, "plain", 1)] * 10)
    log.truncate_to(8)
    (producer,) = log.active_producers()
    assert [batch.last_offset for batch in producer.batches] == [5, 6, 7]


@given(actions)
@settings(max_examples=20, deadline=None)
def test_producer_state_is_rebuilt_without_any_snapshot(
    new_log_dir: Callable[[], LogTestDirectory], actions: Actions
) -> None:
    log_dir = new_log_dir()
    log = log_dir.create(CONFIG)
    perform(log, actions)
    before = producer_state_of(log)
    log_dir.stop()
    for snapshot in log_dir.folder().glob("*.snapshot"):
        snapshot.write_bytes(snapshot.read_bytes()[:-1] + b"!")
    log_dir.restart()
    assert producer_state_of(log_dir.open(CONFIG)) == before


def test_a_damaged_transaction_index_is_rebuilt(log_dir: LogTestDirectory) -> None:
    log = log_dir.create(CONFIG)
    perform(log, [(1, "write", 2), (2, "write", 1), (1, "abort", 1), (2, "abort", 1)])
    before = producer_state_of(log)
    assert len(before[2]) == 2
    log_dir.stop()
    (index,) = log_dir.folder().glob("*.txnindex")
    whole = index.read_bytes()
    index.write_bytes(whole[:-5])
    log_dir.restart()
    assert producer_state_of(log_dir.open(CONFIG)) == before
    assert index.read_bytes() == whole


# as Kafka 4.3 wrote them: a producer within a transaction, and one that knows of none
IN_TRANSACTION = bytes.fromhex(
    "0001c582a27e00000001"
    "0000000000000001" "0000" "0000001e" "0000000000000024" "00000000"
    "000001a1e1bc8de4" "00000000" "0000000000000024"
)  # fmt: skip
IDEMPOTENT = bytes.fromhex(
    "000155b6d81600000001"
    "0000000000000000" "0000" "00000bb7" "0000000000000bb7" "0000002b"
    "000001a1e1bc7fb0" "ffffffff" "ffffffffffffffff"
)  # fmt: skip


def test_a_snapshot_written_by_kafka_is_read() -> None:
    (producer,) = decode(IN_TRANSACTION)
    assert (producer.producer_id, producer.epoch, producer.coordinator_epoch) == (1, 0, 0)
    assert (producer.last_sequence, producer.last_offset) == (30, 36)
    assert producer.transaction_first_offset == 36
    (producer,) = decode(IDEMPOTENT)
    (last,) = producer.batches
    assert last == (2999 - 43, 2999, 2999 - 43, 2999, 0x01A1E1BC7FB0)
    assert producer.transaction_first_offset == -1


@pytest.mark.parametrize("content", [IN_TRANSACTION, IDEMPOTENT])
def test_a_snapshot_is_written_as_kafka_does(content: bytes) -> None:
    assert encode(decode(content)) == content


@pytest.mark.parametrize("at", [0, 3, 12, 30, 55])
def test_a_damaged_snapshot_is_detected(at: int) -> None:
    content = bytearray(IDEMPOTENT)
    content[at] ^= 0x40
    with pytest.raises(CorruptSnapshot):
        decode(bytes(content))
