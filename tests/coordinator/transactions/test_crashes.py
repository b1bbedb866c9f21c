"""A crash between any two steps ends in a full commit or a full abort."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import count

import pytest
from tests.coordinator.transactions.house import House, Producer

from barnabas.wire.errors import ErrorCode

PARTITIONS = range(3)


class Crash(BaseException):
    """The process is gone."""


class Fuse:
    """Lets so many things be written, to the log or to a partition, and no more."""

    def __init__(self, house: House, writes: int) -> None:
        self.is_blown = False
        self._left = writes
        self._house = house
        self._append = house.log.append

        def append(batch: bytearray) -> int:
            self._burn()
            return self._append(batch)

        house.log.append = append  # type: ignore[method-assign]
        house.participants.before_each = self._burn

    def _burn(self) -> None:
        if not self._left:
            self.is_blown = True
            raise Crash
        self._left -= 1

    def remove(self) -> None:
        self._house.log.append = self._append  # type: ignore[method-assign]
        self._house.participants.before_each = lambda: None


def crashes(step: Callable[[House, Producer], None], version: int) -> Iterator[House]:
    """The house after a crash before each write of `step`, and after the last."""
    for writes in count():
        house = House(transaction_version=version)
        producer = house.producer(timeout_ms=30_000)
        house.add(producer, *PARTITIONS)
        for index in PARTITIONS:
            house.participants.append(producer.producer_id, producer.epoch, ("t", index))
        fuse = Fuse(house, writes)
        with suppress(Crash):
            step(house, producer)
        fuse.remove()
        yield house
        if not fuse.is_blown:
            return


def resume(house: House) -> None:
    """Load what is in the log, and do what it says."""
    house.elect()
    house.advance(0)


def told(house: House) -> list[list[bool]]:
    return [participant.outcomes for participant in house.participants.partitions.values()]


def states(house: House) -> list[int]:
    return [value.transaction_status for value in house.values("x") if value is not None]


@pytest.mark.parametrize("version", [0, 1, 2])
@pytest.mark.parametrize("committed", [True, False])
def test_an_outcome_in_the_log_is_told_in_full_and_any_other_is_abort(
    version: int, committed: bool
) -> None:
    def step(house: House, producer: Producer) -> None:
        house.end(producer, committed=committed, version=5 if version == 2 else 4)

    cuts = []
    for house in crashes(step, version):
        was_decided = states(house)[-1] > 1
        cuts.append(sum(map(len, told(house))))
        resume(house)
        if was_decided:
            assert told(house) == [[committed]] * len(PARTITIONS)
        else:
            assert told(house) == [[]] * len(PARTITIONS)
            house.advance(60_000)
            assert told(house) == [[False]] * len(PARTITIONS)
        assert house.state_of() == (
            "CompleteCommit" if was_decided and committed else "CompleteAbort"
        )
    # Nothing written; the outcome; one, two, three markers; the last record.
    assert cuts == [0, 0, 1, 2, 3, 3]


@pytest.mark.parametrize("version", [0, 1, 2])
def test_a_crash_while_a_successor_ends_it_changes_nothing(version: int) -> None:
    for house in crashes(lambda house, producer: None, version):
        request_version = 5 if version == 2 else 4
        producer_id = house.transactions.by_id["x"].producer_id
        house.participants.is_holding = True
        house.end(Producer("x", producer_id, 0), version=request_version)
        house.participants.is_holding = False
        for writes in range(4):
            fuse = Fuse(house, writes)
            with pytest.raises(Crash):
                resume(house)
            fuse.remove()
        resume(house)
        assert told(house) == [[True]] * len(PARTITIONS)
        assert house.state_of() == "CompleteCommit"


@pytest.mark.parametrize("version", [0, 1, 2])
def test_a_crash_while_a_transaction_is_fenced_leaves_it_open_or_aborted(version: int) -> None:
    def step(house: House, _: Producer) -> None:
        house.init("x")

    for house in crashes(step, version):
        house.elect()
        house.advance(60_000)
        assert told(house) == [[False]] * len(PARTITIONS)
        assert house.state_of() == "CompleteAbort"


def test_an_outcome_that_was_not_committed_is_lost_with_its_leader() -> None:
    house = House()
    producer = house.producer()
    house.add(producer, 0)
    house.participants.append(producer.producer_id, 0, ("t", 0))
    house.log.committing = False
    answer = house.end(producer)
    house.log.truncate_to(house.log.high_watermark)
    house.log.committing = True
    house.elect()
    assert answer.result().error_code == ErrorCode.NOT_COORDINATOR
    assert house.state_of() == "Ongoing"
    assert not house.participants.requests
    assert house.end(producer, committed=False).result().error_code == ErrorCode.NONE
    assert told(house) == [[False]]


def test_a_successor_waits_until_what_it_found_is_committed() -> None:
    house = House()
    producer = house.producer()
    house.add(producer, 0)
    house.log.committing = False
    house.end(producer)
    house.elect()
    house.advance(10_000)
    assert not house.participants.requests
    house.log.committing = True
    house.log.commit()
    house.advance(10_000)
    assert house.state_of() == "CompleteCommit"


def test_the_last_epoch_survives_no_reload_as_it_is_not_in_the_log() -> None:
    house = House()
    producer = house.producer()
    house.init("x", producer)
    assert house.init("x", producer).result().producer_epoch == 1
    house.elect()
    assert house.init("x", producer).result().error_code == ErrorCode.PRODUCER_FENCED


def test_everything_else_survives() -> None:
    house = House()
    producer = house.producer()
    house.add(producer, 0, 1)
    before = house.transactions.by_id["x"]
    house.elect()
    assert house.transactions.by_id["x"] == before
