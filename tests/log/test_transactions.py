"""Which batches and markers a log takes as transactions begin and end (KIP-890)."""

import pytest
from tests.log.log_test_directory import (
    NOW_MS,
    SMALL,
    LogTestDirectory,
    append,
    batch,
    marker,
    numbered,
    write,
)

from barnabas.log import Log, LogAppendInfo, LogConfig, VerificationGuard
from barnabas.log.producers.verification import MAX_PENDING_VERIFICATIONS
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.records.validate import ValidBatch


def of_transaction(sequence: int = 0, *, epoch: int = 0, producer_id: int = 1) -> ValidBatch:
    return batch(producer_id=producer_id, epoch=epoch, sequence=sequence, transactional=True)


def verify(log: Log, valid: ValidBatch, *, from_zero: bool = False) -> VerificationGuard | None:
    return log.producers.start_batch_verification(valid.header, from_zero=from_zero, now_ms=NOW_MS)


def append_verified(
    log: Log, valid: ValidBatch, verification: VerificationGuard | None
) -> LogAppendInfo:
    return log.append_as_leader(valid, 0, NOW_MS, verification=verification)


def end(
    log: Log,
    epoch: int = 0,
    *,
    committed: bool = True,
    version: int = 1,
    coordinator_epoch: int = 0,
) -> LogAppendInfo:
    ended = marker(1, epoch, committed=committed, coordinator_epoch=coordinator_epoch)
    return log.append_as_leader(ended, 0, NOW_MS, from_client=False, transaction_version=version)


def rejects_with(code: ErrorCode) -> "pytest.RaisesExc[KafkaError]":
    return pytest.raises(KafkaError, match=code.name)


@pytest.fixture
def log(log_dir: LogTestDirectory) -> Log:
    return log_dir.create()


# Beginning


def test_an_unverified_transaction_is_not_begun(log: Log) -> None:
    with rejects_with(ErrorCode.INVALID_TXN_STATE):
        append_verified(log, of_transaction(), None)
    assert log.log_end_offset == 0


def test_a_verified_batch_begins_a_transaction_and_later_ones_need_no_verification(
    log: Log,
) -> None:
    assert append_verified(log, of_transaction(0), verify(log, of_transaction(0))).first_offset == 0
    assert verify(log, of_transaction(1)) is None
    assert append_verified(log, of_transaction(1), None).first_offset == 1
    assert log.producers.first_undecided_offset == 0


def test_a_batch_after_the_abort_of_its_transaction_is_rejected(log: Log) -> None:
    append_verified(log, of_transaction(0), verify(log, of_transaction(0)))
    end(log, committed=False)
    with rejects_with(ErrorCode.INVALID_TXN_STATE):
        append_verified(log, of_transaction(1), None)
    assert log.producers.first_undecided_offset is None


def test_a_marker_between_verification_and_append_revokes_the_verification(log: Log) -> None:
    verification = verify(log, of_transaction())
    end(log, committed=False)
    with rejects_with(ErrorCode.INVALID_TXN_STATE):
        append_verified(log, of_transaction(), verification)


def test_the_verification_of_one_transaction_does_not_cover_the_next(log: Log) -> None:
    before = verify(log, of_transaction())
    end(log, committed=False)
    verify(log, of_transaction())
    with rejects_with(ErrorCode.INVALID_TXN_STATE):
        append_verified(log, of_transaction(), before)


def test_an_open_transaction_of_another_epoch_is_not_the_batchs_own(log: Log) -> None:
    append_verified(log, of_transaction(0), verify(log, of_transaction(0)))
    bumped = of_transaction(0, epoch=1)
    with rejects_with(ErrorCode.INVALID_TXN_STATE):
        append_verified(log, bumped, None)
    assert verify(log, bumped) is not None


def test_a_retry_is_recognised_without_verification(log: Log) -> None:
    append_verified(log, of_transaction(0), verify(log, of_transaction(0)))
    end(log)
    assert append_verified(log, of_transaction(0), None).duplicate


def test_a_batch_does_not_overtake_one_that_could_not_be_verified(log: Log) -> None:
    verify(log, of_transaction(0))  # the coordinator does not respond: the client will retry
    later = verify(log, of_transaction(1))
    with rejects_with(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER):
        append_verified(log, of_transaction(1), later)
    retried = verify(log, of_transaction(0))
    assert append_verified(log, of_transaction(0), retried).first_offset == 0
    assert append_verified(log, of_transaction(1), None).first_offset == 1


def test_a_new_epoch_restarts_the_sequence_of_a_pending_verification(log: Log) -> None:
    verify(log, of_transaction(0))
    verification = verify(log, of_transaction(7, epoch=1))
    assert append_verified(log, of_transaction(7, epoch=1), verification).first_offset == 0


def test_with_an_epoch_for_each_transaction_the_first_sequence_is_zero(log: Log) -> None:
    verification = verify(log, of_transaction(5), from_zero=True)
    with rejects_with(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER):
        append_verified(log, of_transaction(5), verification)
    assert append_verified(log, of_transaction(0), verification).first_offset == 0


def test_a_fenced_producer_is_rejected_though_it_was_verified(log: Log) -> None:
    append_verified(log, of_transaction(0, epoch=4), verify(log, of_transaction(0, epoch=4)))
    end(log, 4)
    zombie = of_transaction(1, epoch=3)
    with rejects_with(ErrorCode.INVALID_PRODUCER_EPOCH):
        append_verified(log, zombie, verify(log, zombie))


def test_without_verification_a_transaction_begins_at_once(log_dir: LogTestDirectory) -> None:
    log = log_dir.create(LogConfig(verify_transactions=False))
    assert append_verified(log, of_transaction(), None).first_offset == 0


def test_a_coordinator_needs_no_verification(log: Log) -> None:
    written = of_transaction(-1)
    log.append_as_leader(written, 0, NOW_MS, from_client=False)
    assert log.producers.first_undecided_offset == 0


def test_plain_batches_of_a_producer_that_is_being_verified_stay_in_order(log: Log) -> None:
    verify(log, of_transaction(0))
    with rejects_with(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER):
        write(log, numbered(1, 0, 1))
    assert write(log, numbered(2, 0, 1)).first_offset == 0


def test_unused_verifications_expire(log: Log) -> None:
    unused = verify(log, of_transaction())
    log.remove_expired_producers(NOW_MS + SMALL.producer_expiration_ms + 1)
    with rejects_with(ErrorCode.INVALID_TXN_STATE):
        append_verified(log, of_transaction(), unused)


def test_pending_verifications_are_bounded_and_the_oldest_is_removed_first(log: Log) -> None:
    first, second = verify(log, of_transaction(producer_id=1)), None
    for producer_id in range(2, MAX_PENDING_VERIFICATIONS + 2):
        last = verify(log, of_transaction(producer_id=producer_id))
        second = second or last
    with rejects_with(ErrorCode.INVALID_TXN_STATE):
        append_verified(log, of_transaction(producer_id=1), first)
    assert append_verified(log, of_transaction(producer_id=2), second).first_offset == 0


# Ending


def test_with_version_two_a_marker_has_a_greater_epoch_and_the_next_transaction_begins_at_zero(
    log: Log,
) -> None:
    write(log, of_transaction(0))
    write(log, of_transaction(1))
    with rejects_with(ErrorCode.INVALID_PRODUCER_EPOCH):
        end(log, 0, version=2)
    end(log, 1, version=2)
    assert log.producers.first_undecided_offset is None
    with rejects_with(ErrorCode.INVALID_PRODUCER_EPOCH):
        write(log, of_transaction(2, epoch=0))
    with rejects_with(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER):
        write(log, of_transaction(2, epoch=1))
    assert write(log, of_transaction(0, epoch=1)).first_offset == 3


def test_a_marker_of_version_two_may_be_written_again(log: Log) -> None:
    write(log, of_transaction(0))
    end(log, 1, version=2)
    end(log, 1, version=2)
    write(log, of_transaction(0, epoch=1))
    with rejects_with(ErrorCode.INVALID_PRODUCER_EPOCH):
        end(log, 1, version=2)


@pytest.mark.parametrize("version", [0, 1])
def test_before_version_two_a_marker_has_the_epoch_of_the_batches(log: Log, version: int) -> None:
    write(log, of_transaction(0))
    end(log, 0, version=version)
    assert log.producers.first_undecided_offset is None
    assert write(log, of_transaction(1)).first_offset == 2


@pytest.mark.parametrize("version", [1, 2])
def test_a_marker_of_a_replaced_coordinator_is_rejected(log: Log, version: int) -> None:
    write(log, of_transaction(0))
    end(log, 1, version=version, coordinator_epoch=5)
    write(log, of_transaction(0, epoch=1))
    with rejects_with(ErrorCode.TRANSACTION_COORDINATOR_FENCED):
        end(log, 2, version=version, coordinator_epoch=4)
    assert log.producers.first_undecided_offset == 2


def test_a_marker_without_records_is_appended_and_fences(log: Log) -> None:
    end(log, 1, version=2)
    assert (log.log_end_offset, log.last_stable_offset(1)) == (1, 1)
    with rejects_with(ErrorCode.INVALID_PRODUCER_EPOCH):
        write(log, of_transaction(0, epoch=0))


# Over a stop


@pytest.mark.parametrize("stop", ["stop_and_reopen", "kill_and_reopen"])
def test_open_transactions_are_open_after_a_shutdown(
    log_dir: LogTestDirectory, log: Log, stop: str
) -> None:
    append(log, b"before")
    write(log, of_transaction(0))
    write(log, of_transaction(0, producer_id=2))
    end(log, 1, committed=False, version=2)
    log = getattr(log_dir, stop)()
    assert log.producers.first_undecided_offset == 2
    assert log.aborted_transactions(0, log.log_end_offset) == [(1, 1)]
    assert verify(log, of_transaction(1, producer_id=2)) is None
    with rejects_with(ErrorCode.INVALID_TXN_STATE):
        append_verified(log, of_transaction(0, epoch=1), None)
    assert write(log, of_transaction(0, epoch=1)).first_offset == 4


def test_a_verification_does_not_survive_a_shutdown(log_dir: LogTestDirectory, log: Log) -> None:
    verification = verify(log, of_transaction())
    log = log_dir.stop_and_reopen()
    with rejects_with(ErrorCode.INVALID_TXN_STATE):
        append_verified(log, of_transaction(), verification)


def test_completed_transactions_below_the_high_watermark_are_forgotten(log: Log) -> None:
    for epoch in range(3):
        write(log, of_transaction(0, epoch=epoch))
        end(log, epoch + 1, version=2)
    assert log.last_stable_offset(3) == 2
    log.producers.on_high_watermark_updated(log.log_end_offset)
    assert log.last_stable_offset(3) == 3
