import pytest
from tests.log.log_test_directory import (
    NOW_MS,
    SMALL,
    LogTestDirectory,
    append,
    batch,
    marker,
    numbered,
    read_all,
    write,
)

from barnabas.log import Log
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.records.validate import ValidBatch

LAST = 0x7FFFFFFF


def error(log: Log, valid: ValidBatch, *, from_client: bool = True) -> ErrorCode:
    before = log.log_end_offset
    with pytest.raises(KafkaError) as refused:
        write(log, valid, from_client=from_client)
    assert log.log_end_offset == before
    assert "orders-0" in refused.value.message
    return refused.value.code


@pytest.fixture
def log(log_dir: LogTestDirectory) -> Log:
    return log_dir.create()


def test_batches_in_sequence_are_appended(log: Log) -> None:
    assert write(log, numbered(1, 0, 0, count=3)).first_offset == 0
    assert write(log, numbered(1, 0, 3)).first_offset == 3
    assert write(log, numbered(2, 0, 0)).first_offset == 4


def test_a_retry_gets_the_offsets_of_the_first_copy(log: Log) -> None:
    first = write(log, numbered(1, 0, 0, count=3))
    append(log, b"somebody else's")
    again = write(log, numbered(1, 0, 0, count=3))
    assert again == (first.first_offset, first.last_offset, True, NOW_MS)
    assert log.log_end_offset == 4


def test_the_last_five_batches_are_recognised(log: Log) -> None:
    for sequence in range(7):
        write(log, numbered(1, 0, sequence))
    for sequence in range(2, 7):
        assert write(log, numbered(1, 0, sequence)) == (sequence, sequence, True, NOW_MS)
    assert error(log, numbered(1, 0, 1)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_retry_with_other_batch_bounds_is_out_of_order(log: Log) -> None:
    write(log, numbered(1, 0, 0, count=3))
    assert error(log, numbered(1, 0, 0, count=2)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_gap_in_the_sequence_is_rejected(log: Log) -> None:
    write(log, numbered(1, 0, 0))
    assert error(log, numbered(1, 0, 2)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_an_unknown_producer_may_begin_anywhere(log: Log) -> None:
    assert write(log, numbered(1, 3, 77)).first_offset == 0
    assert write(log, numbered(1, 3, 78)).first_offset == 1


def test_after_the_last_sequence_comes_zero(log: Log) -> None:
    write(log, numbered(1, 0, LAST - 1, count=2))
    assert write(log, numbered(1, 0, 0)).first_offset == 2
    assert write(log, numbered(1, 0, LAST - 1, count=2)).duplicate


def test_a_batch_may_wrap_around_the_last_sequence(log: Log) -> None:
    write(log, numbered(1, 0, LAST - 1, count=4))
    assert error(log, numbered(1, 0, 3)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert write(log, numbered(1, 0, 2)).first_offset == 4


def test_a_new_epoch_begins_at_zero_and_fences_the_old(log: Log) -> None:
    write(log, numbered(1, 0, 0))
    assert error(log, numbered(1, 1, 1)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    write(log, numbered(1, 1, 0))
    assert error(log, numbered(1, 0, 1)) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert error(log, numbered(1, 0, 0)) is ErrorCode.INVALID_PRODUCER_EPOCH


def test_an_open_transaction_limits_the_last_stable_offset(log: Log) -> None:
    append(log, b"before")
    write(log, batch(producer_id=1, epoch=0, sequence=0, transactional=True))
    append(log, b"after")
    assert log.producers.first_undecided_offset == 1
    assert log.last_stable_offset(log.log_end_offset) == 1
    write(log, marker(1, 0, committed=True), from_client=False)
    assert log.producers.first_undecided_offset is None
    assert log.last_stable_offset(log.log_end_offset) == log.log_end_offset


def test_the_last_stable_offset_passes_a_transaction_once_its_marker_is_committed(log: Log) -> None:
    write(log, batch(producer_id=1, epoch=0, sequence=0, transactional=True))
    write(log, marker(1, 0, committed=True), from_client=False)
    assert log.last_stable_offset(1) == 0
    assert log.last_stable_offset(2) == 2


def test_only_aborted_transactions_are_listed(log: Log) -> None:
    for producer_id in (1, 2):
        write(log, batch(producer_id=producer_id, epoch=0, sequence=0, transactional=True))
    write(log, marker(1, 0, committed=True), from_client=False)
    write(log, marker(2, 0, committed=False), from_client=False)
    append(log, b"after")
    assert log.aborted_transactions(0, log.log_end_offset) == [(2, 1)]
    assert log.aborted_transactions(0, 1) == []
    assert log.aborted_transactions(4, log.log_end_offset) == []


def test_aborted_transactions_are_found_in_later_segments(log: Log) -> None:
    write(log, batch(producer_id=1, epoch=0, sequence=0, transactional=True))
    for _ in range(3):
        append(log, b"x")
        log.maintenance.roll_at(log.log_end_offset)
    write(log, marker(1, 0, committed=False), from_client=False)
    assert log.aborted_transactions(0, 2) == [(1, 0)]


def test_a_marker_without_records_aborts_nothing(log: Log) -> None:
    write(log, marker(1, 0, committed=False), from_client=False)
    assert log.aborted_transactions(0, log.log_end_offset) == []
    assert log.last_stable_offset(1) == 1


def test_a_marker_of_an_old_epoch_is_rejected(log: Log) -> None:
    write(log, numbered(1, 5, 0))
    old = marker(1, 4, committed=True)
    assert error(log, old, from_client=False) is ErrorCode.INVALID_PRODUCER_EPOCH


def test_a_marker_of_an_old_coordinator_is_rejected(log: Log) -> None:
    write(log, marker(1, 0, committed=True, coordinator_epoch=5), from_client=False)
    stale = marker(1, 0, committed=True, coordinator_epoch=4)
    assert error(log, stale, from_client=False) is ErrorCode.TRANSACTION_COORDINATOR_FENCED


def test_the_epoch_of_a_marker_fences_the_producer(log: Log) -> None:
    write(log, batch(producer_id=1, epoch=0, sequence=0, transactional=True))
    write(log, marker(1, 1, committed=False), from_client=False)
    assert error(log, numbered(1, 0, 1)) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert write(log, numbered(1, 1, 0)).first_offset == 2


def test_a_plain_write_within_a_transaction_is_rejected(log: Log) -> None:
    write(log, batch(producer_id=1, epoch=0, sequence=0, transactional=True))
    assert error(log, numbered(1, 0, 1)) is ErrorCode.INVALID_TXN_STATE


def test_a_coordinator_writes_without_sequences(log: Log) -> None:
    for _ in range(3):
        write(
            log,
            batch(producer_id=1, epoch=0, sequence=-1, transactional=True),
            from_client=False,
        )
    assert log.log_end_offset == 3


def test_silent_producers_expire_unless_a_transaction_is_open(log: Log) -> None:
    write(log, numbered(1, 0, 0))
    write(log, batch(producer_id=2, epoch=0, sequence=0, transactional=True))
    assert log.remove_expired_producers(NOW_MS + SMALL.producer_expiration_ms) == 0
    assert log.remove_expired_producers(NOW_MS + SMALL.producer_expiration_ms + 1) == 1
    assert [producer.producer_id for producer in log.active_producers()] == [2]
    assert write(log, numbered(1, 0, 9)).first_offset == 2


def test_producers_survive_a_clean_shutdown(log_dir: LogTestDirectory, log: Log) -> None:
    write(log, numbered(1, 0, 0, count=3))
    log = log_dir.stop_and_reopen()
    assert write(log, numbered(1, 0, 0, count=3)) == (0, 2, True, NOW_MS)
    assert error(log, numbered(1, 0, 5)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert write(log, numbered(1, 0, 3)).first_offset == 3


def test_a_retry_after_a_crash_is_recognised(log_dir: LogTestDirectory, log: Log) -> None:
    for sequence in range(5):
        write(log, numbered(1, 0, sequence))
    log = log_dir.kill_and_reopen()
    assert [write(log, numbered(1, 0, s)).duplicate for s in range(5)] == [True] * 5
    assert len(read_all(log)) == 5


def test_active_producers_have_the_fields_of_describe_producers(log: Log) -> None:
    write(log, batch([b"a", b"b"], producer_id=8, epoch=2, sequence=0, transactional=True))
    (producer,) = log.active_producers()
    assert (producer.producer_id, producer.epoch, producer.last_sequence) == (8, 2, 1)
    assert (producer.last_timestamp, producer.transaction_first_offset) == (NOW_MS, 0)
    assert producer.coordinator_epoch == -1
