"""The checks of a chaotic run find what they are there to find."""

import random
from dataclasses import replace

import pytest
from tests.cluster.chaos import verify
from tests.cluster.chaos.notes import (
    PARTITIONS,
    Acknowledgement,
    Outcome,
    Place,
    Seen,
    Transaction,
)
from tests.cluster.chaos.readers import Reader
from tests.cluster.chaos.writers import IdempotentWriter, TransactionalWriter

PLAIN, TRANSACTIONAL = ("plain", 0), ("transactional", 0)
RECORDS = 5

Log = dict[Place, list[Seen]]


@pytest.fixture
def log() -> Log:
    """Five records of w0 in each partition, and a transaction of two of t0 in one."""
    log: Log = {
        ("plain", index): [Seen(number, "w0", (number,), number) for number in range(RECORDS)]
        for index in range(PARTITIONS)
    }
    return log | {TRANSACTIONAL: [Seen(7, "t0", (0, 0, 2), 0), Seen(8, "t0", (0, 1, 2), 1)]}


@pytest.fixture
def writer() -> IdempotentWriter:
    writer = IdempotentWriter("w0", "", "plain", random.Random(1))
    writer.written = RECORDS
    writer.acknowledged = [
        Acknowledgement(0, index, number, number)
        for index in range(PARTITIONS)
        for number in range(RECORDS)
    ]
    return writer


@pytest.fixture
def transactional() -> TransactionalWriter:
    writer = TransactionalWriter("t0", "", "transactional", random.Random(1))
    writer.transactions = [Transaction(0, 2, Outcome.COMMITTED)]
    return writer


@pytest.fixture
def reader(log: Log) -> Reader:
    reader = Reader("", ["plain"], "read_committed")
    reader.seen = {place: list(seen) for place, seen in log.items()}
    return reader


def test_nothing_is_found_where_all_is_well(
    log: Log, writer: IdempotentWriter, transactional: TransactionalWriter, reader: Reader
) -> None:
    assert not list(verify.nothing_acknowledged_is_lost([writer], log))
    assert not list(verify.each_is_there_once_and_in_order([writer], log))
    assert not list(verify.transactions_are_whole([transactional], log))
    assert not list(verify.nobody_was_shown_what_is_not_there([reader], log, log))


def test_an_acknowledged_record_that_is_gone(log: Log, writer: IdempotentWriter) -> None:
    log[PLAIN].pop()
    assert len(list(verify.nothing_acknowledged_is_lost([writer], log))) == 1
    assert len(list(verify.each_is_there_once_and_in_order([writer], log))) == 1


def test_an_acknowledged_record_that_changed(log: Log, writer: IdempotentWriter) -> None:
    log[PLAIN][2] = replace(log[PLAIN][2], checksum=99)
    assert len(list(verify.nothing_acknowledged_is_lost([writer], log))) == 1


def test_a_record_that_is_there_twice(log: Log, writer: IdempotentWriter) -> None:
    log[PLAIN].append(Seen(RECORDS, "w0", (RECORDS - 1,), RECORDS - 1))
    assert len(list(verify.each_is_there_once_and_in_order([writer], log))) == 1


def test_records_out_of_order(log: Log, writer: IdempotentWriter) -> None:
    first, second, *more = log[PLAIN]
    log[PLAIN] = [replace(second, offset=0), replace(first, offset=1), *more]
    assert len(list(verify.each_is_there_once_and_in_order([writer], log))) == 1


def test_a_record_that_was_shown_and_is_gone(log: Log, reader: Reader) -> None:
    log[PLAIN].pop()
    assert len(list(verify.nobody_was_shown_what_is_not_there([reader], log, log))) == 1


def test_a_record_that_was_shown_twice_or_never(log: Log, reader: Reader) -> None:
    reader.seen[PLAIN].insert(0, reader.seen[PLAIN][0])
    reader.seen[TRANSACTIONAL].pop()
    assert len(list(verify.nobody_was_shown_what_is_not_there([reader], log, log))) == 2


@pytest.mark.parametrize(
    ("outcome", "records", "is_broken"),
    [
        (Outcome.COMMITTED, 1, True),
        (Outcome.COMMITTED, 0, True),
        (Outcome.UNKNOWN, 1, True),
        (Outcome.UNKNOWN, 2, False),
        (Outcome.UNKNOWN, 0, False),
        (Outcome.ABORTED, 2, True),
        (Outcome.ABORTED, 1, True),
        (Outcome.ABORTED, 0, False),
    ],
)
def test_transactions_in_part_or_against_their_outcome(
    log: Log,
    transactional: TransactionalWriter,
    outcome: Outcome,
    records: int,
    is_broken: bool,
) -> None:
    transactional.transactions[0].outcome = outcome
    del log[TRANSACTIONAL][records:]
    assert bool(list(verify.transactions_are_whole([transactional], log))) is is_broken
