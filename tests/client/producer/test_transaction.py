"""A transaction's states: what may be called when, and what each error leads to."""

import re

import pytest

from barnabas.client.errors import KafkaError, KafkaException
from barnabas.client.producer.transaction import _ALLOWED, ProducerTransaction, TxnState
from barnabas.wire.errors import ErrorCode


def opened(*, is_v2: bool = True) -> ProducerTransaction:
    transaction = ProducerTransaction()
    transaction.state = TxnState.READY
    transaction.is_v2 = is_v2
    transaction.begin()
    return transaction


def test_in_v2_a_partition_is_added_by_its_first_batch() -> None:
    transaction = opened()
    assert transaction.is_empty
    assert transaction.may_send_to(("t", 0))
    assert transaction.partitions == {("t", 0)}


def test_in_v1_a_partition_waits_until_the_coordinator_has_added_it() -> None:
    transaction = opened(is_v2=False)
    assert not transaction.may_send_to(("t", 0))
    assert transaction.new_partitions == {("t", 0)}
    transaction.partitions.add(("t", 0))
    assert transaction.may_send_to(("t", 0))


def test_nothing_is_sent_outside_of_a_transaction() -> None:
    for state in TxnState:
        transaction = opened()
        transaction.state = state
        sending = state in (TxnState.IN_TRANSACTION, TxnState.COMMITTING, TxnState.PREPARING)
        assert transaction.may_send_to(("t", 0)) == sending


def test_a_failed_batch_makes_the_transaction_abortable_only() -> None:
    transaction = opened()
    transaction.on_batch_failed(KafkaError(KafkaError._MSG_TIMED_OUT))
    assert transaction.state is TxnState.ABORTABLE_ERROR
    with pytest.raises(KafkaException) as raised:
        transaction.require("commit_transaction")
    assert raised.value.args[0].txn_requires_abort()
    transaction.require("abort_transaction")
    transaction.end()
    assert transaction.state is TxnState.READY
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
    assert transaction.state is (TxnState.FATAL_ERROR if fatal else TxnState.ABORTABLE_ERROR)


def test_every_call_of_a_fenced_producer_raises_a_fatal_error() -> None:
    transaction = opened()
    transaction.fail(ErrorCode.PRODUCER_FENCED)
    for call in ("produce", "commit_transaction", "abort_transaction", "begin_transaction"):
        with pytest.raises(KafkaException) as raised:
            transaction.require(call)
        assert raised.value.args[0].fatal()


@pytest.mark.parametrize(
    ("state", "call"),
    [
        (TxnState.UNINITIALIZED, "begin_transaction"),
        (TxnState.READY, "init_transactions"),
        (TxnState.READY, "commit_transaction"),
        (TxnState.READY, "abort_transaction"),
        (TxnState.READY, "produce"),
        (TxnState.IN_TRANSACTION, "begin_transaction"),
        (TxnState.COMMITTING, "send_offsets_to_transaction"),
        (TxnState.COMMITTING, "abort_transaction"),
    ],
)
def test_calls_in_the_wrong_state_raise_a_state_error(state: TxnState, call: str) -> None:
    transaction = ProducerTransaction()
    transaction.state = state
    with pytest.raises(KafkaException) as raised:
        transaction.require(call)
    assert raised.value.args[0].code() == KafkaError._STATE


@pytest.mark.parametrize(
    "state",
    [state for state in TxnState if state not in (TxnState.ABORTABLE_ERROR, TxnState.FATAL_ERROR)],
)
def test_a_call_that_is_not_allowed_names_one_that_is(state: TxnState) -> None:
    for call, allowed in _ALLOWED.items():
        if state in allowed:
            continue
        transaction = ProducerTransaction()
        transaction.state = state
        with pytest.raises(KafkaException) as raised:
            transaction.require(call)
        rejected, first, *_ = re.findall(r"(\w+)\(\)", raised.value.args[0].str())
        assert rejected == call
        assert state in _ALLOWED[first], raised.value


def test_errors_of_a_transaction_say_what_to_call() -> None:
    transaction = ProducerTransaction()
    transaction.state = TxnState.IN_TRANSACTION
    transaction.fail(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    with pytest.raises(KafkaException, match=r"; call abort_transaction\(\)"):
        transaction.require("commit_transaction")
    transaction.fail(ErrorCode.PRODUCER_FENCED)
    with pytest.raises(KafkaException, match="has taken over; close this producer"):
        transaction.require("abort_transaction")
