"""A crash between any two steps ends in a full commit or a full abort."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import count

import pytest
from tests.coordinator.transactions.harness import Producer, TransactionHarness

from barnabas.wire.errors import ErrorCode

PARTITIONS = range(3)


class Crash(BaseException):
    """The process is gone."""


class Fuse:
    """Lets so many things be written, to the log or to a partition, and no more."""

    def __init__(self, harness: TransactionHarness, writes: int) -> None:
        self.is_blown = False
        self._left = writes
        self._harness = harness
        self._append = harness.log.append

        def append(batch: bytearray) -> int:
            self._burn()
            return self._append(batch)

        harness.log.append = append  # type: ignore[method-assign]
        harness.participants.before_each = self._burn

    def _burn(self) -> None:
        if not self._left:
            self.is_blown = True
            raise Crash
        self._left -= 1

    def remove(self) -> None:
        self._harness.log.append = self._append  # type: ignore[method-assign]
        self._harness.participants.before_each = lambda: None


def crashes(
    step: Callable[[TransactionHarness, Producer], None], version: int
) -> Iterator[TransactionHarness]:
    """The harness after a crash before each write of `step`, and after the last."""
    for writes in count():
        harness = TransactionHarness(transaction_version=version)
        producer = harness.producer(timeout_ms=30_000)
        harness.add(producer, *PARTITIONS)
        for index in PARTITIONS:
            harness.participants.append(producer.producer_id, producer.epoch, ("t", index))
        fuse = Fuse(harness, writes)
        with suppress(Crash):
            step(harness, producer)
        fuse.remove()
        yield harness
        if not fuse.is_blown:
            return


def resume(harness: TransactionHarness) -> None:
    """Load what is in the log, and do what it says."""
    harness.elect()
    harness.advance(0)


def outcomes(harness: TransactionHarness) -> list[list[bool]]:
    return [participant.outcomes for participant in harness.participants.partitions.values()]


def states(harness: TransactionHarness) -> list[int]:
    return [value.transaction_status for value in harness.values("x") if value is not None]


@pytest.mark.parametrize("version", [0, 1, 2])
@pytest.mark.parametrize("committed", [True, False])
def test_a_committed_outcome_reaches_all_partitions_and_any_other_is_an_abort(
    version: int, committed: bool
) -> None:
    def step(harness: TransactionHarness, producer: Producer) -> None:
        harness.end(producer, committed=committed, version=5 if version == 2 else 4)

    cuts = []
    for harness in crashes(step, version):
        was_decided = states(harness)[-1] > 1
        cuts.append(sum(map(len, outcomes(harness))))
        resume(harness)
        if was_decided:
            assert outcomes(harness) == [[committed]] * len(PARTITIONS)
        else:
            assert outcomes(harness) == [[]] * len(PARTITIONS)
            harness.advance(60_000)
            assert outcomes(harness) == [[False]] * len(PARTITIONS)
        assert harness.state_of() == (
            "CompleteCommit" if was_decided and committed else "CompleteAbort"
        )
    # Nothing written; the outcome; one, two, three markers; the last record.
    assert cuts == [0, 0, 1, 2, 3, 3]


@pytest.mark.parametrize("version", [0, 1, 2])
def test_a_crash_while_a_successor_ends_it_changes_nothing(version: int) -> None:
    for harness in crashes(lambda harness, producer: None, version):
        request_version = 5 if version == 2 else 4
        producer_id = harness.transactions.by_id["x"].producer_id
        harness.participants.is_holding = True
        harness.end(Producer("x", producer_id, 0), version=request_version)
        harness.participants.is_holding = False
        for writes in range(4):
            fuse = Fuse(harness, writes)
            with pytest.raises(Crash):
                resume(harness)
            fuse.remove()
        resume(harness)
        assert outcomes(harness) == [[True]] * len(PARTITIONS)
        assert harness.state_of() == "CompleteCommit"


@pytest.mark.parametrize("version", [0, 1, 2])
def test_a_crash_while_a_transaction_is_fenced_leaves_it_open_or_aborted(version: int) -> None:
    def step(harness: TransactionHarness, _: Producer) -> None:
        harness.init("x")

    for harness in crashes(step, version):
        harness.elect()
        harness.advance(60_000)
        assert outcomes(harness) == [[False]] * len(PARTITIONS)
        assert harness.state_of() == "CompleteAbort"


def test_an_outcome_that_was_not_committed_is_lost_with_its_leader() -> None:
    harness = TransactionHarness()
    producer = harness.producer()
    harness.add(producer, 0)
    harness.participants.append(producer.producer_id, 0, ("t", 0))
    harness.log.is_committing = False
    response = harness.end(producer)
    harness.log.truncate_to(harness.log.high_watermark)
    harness.log.is_committing = True
    harness.elect()
    assert response.result().error_code == ErrorCode.NOT_COORDINATOR
    assert harness.state_of() == "Ongoing"
    assert not harness.participants.requests
    assert harness.end(producer, committed=False).result().error_code == ErrorCode.NONE
    assert outcomes(harness) == [[False]]


def test_the_next_coordinator_waits_until_its_log_is_committed() -> None:
    harness = TransactionHarness()
    producer = harness.producer()
    harness.add(producer, 0)
    harness.log.is_committing = False
    harness.end(producer)
    harness.elect()
    harness.advance(10_000)
    assert not harness.participants.requests
    harness.log.is_committing = True
    harness.log.commit()
    harness.advance(10_000)
    assert harness.state_of() == "CompleteCommit"


def test_the_last_producer_epoch_is_lost_in_a_failover() -> None:
    harness = TransactionHarness()
    producer = harness.producer()
    harness.init("x", producer)
    assert harness.init("x", producer).result().producer_epoch == 1
    harness.elect()
    assert harness.init("x", producer).result().error_code == ErrorCode.PRODUCER_FENCED


def test_everything_in_the_log_survives_a_failover() -> None:
    harness = TransactionHarness()
    producer = harness.producer()
    harness.add(producer, 0, 1)
    before = harness.transactions.by_id["x"]
    harness.elect()
    assert harness.transactions.by_id["x"] == before
