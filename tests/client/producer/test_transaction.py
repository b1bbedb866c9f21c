"""A transaction's states: what may be called when, and what each error leads to."""

import pytest

from barnabas.client.errors import KafkaError, KafkaException
from barnabas.client.producer.transaction import Phase, Transaction
from barnabas.wire.errors import ErrorCode


def opened(*, joined_by_writing: bool = True) -> Transaction:
    transaction = Transaction()
    transaction.phase = Phase.READY
    transaction.is_joined_by_writing = joined_by_writing
    transaction.begin()
    return transaction


def test_in_the_new_flow_a_partition_joins_by_being_written_to() -> None:
    transaction = opened()
    assert transaction.is_empty
    assert transaction.admits(("t", 0))
    assert transaction.joined == {("t", 0)}


def test_in_the_old_flow_a_partition_waits_until_the_coordinator_knows_it() -> None:
    transaction = opened(joined_by_writing=False)
    assert not transaction.admits(("t", 0))
    assert transaction.to_join == {("t", 0)}
    transaction.joined.add(("t", 0))
    assert transaction.admits(("t", 0))


def test_nothing_is_sent_outside_of_a_transaction() -> None:
    for phase in Phase:
        transaction = opened()
        transaction.phase = phase
        sending = phase in (Phase.OPEN, Phase.COMMITTING, Phase.PREPARING)
        assert transaction.admits(("t", 0)) == sending


def test_a_batch_that_fails_breaks_the_transaction_until_it_is_aborted() -> None:
    transaction = opened()
    transaction.refused(KafkaError(KafkaError._MSG_TIMED_OUT))
    assert transaction.phase is Phase.BROKEN
    with pytest.raises(KafkaException) as refused:
        transaction.require("commit_transaction")
    assert refused.value.args[0].txn_requires_abort()
    transaction.require("abort_transaction")
    transaction.end()
    assert transaction.phase is Phase.READY
    assert transaction.error is None


@pytest.mark.parametrize(
    ("code", "shown", "fatal"),
    [
        (ErrorCode.PRODUCER_FENCED, KafkaError._FENCED, True),
        (ErrorCode.INVALID_PRODUCER_EPOCH, KafkaError._FENCED, True),
        (ErrorCode.INVALID_TXN_STATE, ErrorCode.INVALID_TXN_STATE, True),
        (ErrorCode.TRANSACTION_ABORTABLE, ErrorCode.TRANSACTION_ABORTABLE, False),
        (ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.TOPIC_AUTHORIZATION_FAILED, False),
        (ErrorCode.ILLEGAL_GENERATION, ErrorCode.ILLEGAL_GENERATION, False),
    ],
)
def test_errors_are_fatal_or_need_an_abort(code: int, shown: int, fatal: bool) -> None:
    transaction = opened()
    error = transaction.fail(code)
    assert error.code() == shown
    assert (error.fatal(), error.txn_requires_abort()) == (fatal, not fatal)
    assert transaction.phase is (Phase.DEAD if fatal else Phase.BROKEN)


def test_a_fenced_producer_says_so_whatever_is_called() -> None:
    transaction = opened()
    transaction.fail(ErrorCode.PRODUCER_FENCED)
    for call in ("produce", "commit_transaction", "abort_transaction", "begin_transaction"):
        with pytest.raises(KafkaException) as refused:
            transaction.require(call)
        assert refused.value.args[0].fatal()


@pytest.mark.parametrize(
    ("phase", "call"),
    [
        (Phase.NEW, "begin_transaction"),
        (Phase.READY, "init_transactions"),
        (Phase.READY, "commit_transaction"),
        (Phase.READY, "abort_transaction"),
        (Phase.READY, "produce"),
        (Phase.OPEN, "begin_transaction"),
        (Phase.COMMITTING, "send_offsets_to_transaction"),
        (Phase.COMMITTING, "abort_transaction"),
    ],
)
def test_calls_at_the_wrong_time_are_a_matter_of_state(phase: Phase, call: str) -> None:
    transaction = Transaction()
    transaction.phase = phase
    with pytest.raises(KafkaException) as refused:
        transaction.require(call)
    assert refused.value.args[0].code() == KafkaError._STATE
