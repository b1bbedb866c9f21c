"""The table of moves, and what each step carries over."""

import pytest

from barnabas.coordinator.transactions.metadata import (
    LAST_ASSIGNED_EPOCH,
    TRANSITIONS,
    TransactionMetadata,
    TransactionState,
)

EMPTY = TransactionMetadata("x", producer_id=7, producer_epoch=3, timeout_ms=1_000, updated_ms=10)
ONGOING = EMPTY.with_partitions([("t", 0)], client_version=2, now_ms=20)


def ended(metadata: TransactionMetadata, **changes: int) -> TransactionMetadata:
    how = {"committed": True, "client_version": 2, "next_producer_id": -1, "now_ms": 30}
    return metadata.ended(**how | changes)  # type: ignore[arg-type]


def test_every_state_has_its_moves_and_a_name_as_administrators_read_it() -> None:
    assert set(TRANSITIONS) == set(TransactionState)
    assert [state.title for state in TransactionState] == [
        "Empty",
        "Ongoing",
        "PrepareCommit",
        "PrepareAbort",
        "CompleteCommit",
        "CompleteAbort",
        "Dead",
        "PrepareEpochFence",
    ]


def test_only_ids_without_a_pending_transaction_may_expire() -> None:
    mortal = [state for state in TransactionState if TransactionState.DEAD in TRANSITIONS[state]]
    assert mortal == [
        TransactionState.EMPTY,
        TransactionState.COMPLETE_COMMIT,
        TransactionState.COMPLETE_ABORT,
    ]


def test_a_decided_outcome_cannot_change() -> None:
    assert TRANSITIONS[TransactionState.PREPARE_COMMIT] == {TransactionState.COMPLETE_COMMIT}
    assert TRANSITIONS[TransactionState.PREPARE_ABORT] == {TransactionState.COMPLETE_ABORT}


def test_a_transition_off_the_table_is_a_bug() -> None:
    with pytest.raises(AssertionError, match="x: "):
        ended(ended(ONGOING))


def test_a_transaction_starts_with_its_first_partition() -> None:
    assert (EMPTY.started_ms, ONGOING.started_ms) == (-1, 20)
    more = ONGOING.with_partitions([("t", 1)], client_version=2, now_ms=25)
    assert (more.started_ms, more.updated_ms) == (20, 25)
    assert more.partitions == {("t", 0), ("t", 1)}
    again = ended(more).completed(31).with_partitions([("t", 2)], client_version=2, now_ms=40)
    assert again.started_ms == 40
    assert again.partitions == {("t", 2)}


def test_an_end_of_version_2_bumps_the_epoch_and_remembers_the_one_before() -> None:
    prepared = ended(ONGOING)
    assert (prepared.producer_epoch, prepared.last_producer_epoch) == (4, 3)
    assert prepared.completed(40).producer_epoch == 4


def test_an_end_before_version_2_keeps_the_epoch() -> None:
    completed = ended(ONGOING, client_version=0).completed(40)
    assert (completed.producer_epoch, completed.last_producer_epoch) == (3, -1)


def test_the_last_epoch_is_followed_by_the_next_producer_id() -> None:
    worn = EMPTY.renewed(7, LAST_ASSIGNED_EPOCH, last_epoch=-1, timeout_ms=1, now_ms=11)
    prepared = ended(
        worn.with_partitions([("t", 0)], client_version=2, now_ms=20), next_producer_id=8
    )
    assert (prepared.producer_id, prepared.producer_epoch) == (7, LAST_ASSIGNED_EPOCH + 1)
    completed = prepared.completed(40)
    assert (completed.producer_id, completed.producer_epoch) == (8, 0)
    assert (completed.previous_producer_id, completed.next_producer_id) == (7, -1)


def test_a_producer_fenced_before_version_2_gets_no_next_epoch() -> None:
    fenced = ONGOING.fenced(transaction_version=1, next_producer_id=-1, now_ms=30)
    assert (fenced.producer_epoch, fenced.last_producer_epoch) == (4, -1)
    assert fenced.client_version == 0
