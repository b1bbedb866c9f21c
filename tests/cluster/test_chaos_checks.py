"""The invariant checks of a chaos run find every kind of violation."""

import random
from dataclasses import replace

import pytest
from tests.cluster.chaos import invariants
from tests.cluster.chaos.observations import (
    PARTITIONS,
    Acknowledgement,
    ObservedRecord,
    Outcome,
    PartitionKey,
    Transaction,
)
from tests.cluster.chaos.readers import Reader
from tests.cluster.chaos.writers import IdempotentWriter, TransactionalWriter

PLAIN, TRANSACTIONAL = ("plain", 0), ("transactional", 0)
RECORDS = 5

Log = dict[PartitionKey, list[ObservedRecord]]


@pytest.fixture
def log() -> Log:
    """Five records of w0 in each partition, and a transaction of two of t0 in one."""
    log: Log = {
        ("plain", index): [
            ObservedRecord(number, "w0", (number,), number) for number in range(RECORDS)
        ]
        for index in range(PARTITIONS)
    }
    return log | {
        TRANSACTIONAL: [
            ObservedRecord(7, "t0", (0, 0, 2), 0),
            ObservedRecord(8, "t0", (0, 1, 2), 1),
        ]
    }


@pytest.fixture
def writer() -> IdempotentWriter:
    writer = IdempotentWriter("w0", {}, "plain", random.Random(1))
    writer.written = RECORDS
    writer.acknowledged = [
        Acknowledgement(0, index, number, number)
        for index in range(PARTITIONS)
        for number in range(RECORDS)
    ]
    return writer


@pytest.fixture
def transactional() -> TransactionalWriter:
    writer = TransactionalWriter("t0", {}, "transactional", random.Random(1))
    writer.transactions = [Transaction(0, 2, Outcome.COMMITTED)]
    return writer


@pytest.fixture
def reader(log: Log) -> Reader:
    reader = Reader({}, ["plain"], "read_committed")
    reader.observed = {topic_partition: list(observed) for topic_partition, observed in log.items()}
    return reader


def test_an_intact_log_has_no_violations(
    log: Log, writer: IdempotentWriter, transactional: TransactionalWriter, reader: Reader
) -> None:
    assert not list(invariants.find_lost_records([writer], log))
    assert not list(invariants.find_duplicates_and_gaps([writer], log))
    assert not list(invariants.find_partial_transactions([transactional], log))
    assert not list(invariants.find_wrong_reads([reader], log, log))


def test_a_lost_acknowledged_record_is_found(log: Log, writer: IdempotentWriter) -> None:
    log[PLAIN].pop()
    assert len(list(invariants.find_lost_records([writer], log))) == 1
    assert len(list(invariants.find_duplicates_and_gaps([writer], log))) == 1


def test_a_changed_acknowledged_record_is_found(log: Log, writer: IdempotentWriter) -> None:
    log[PLAIN][2] = replace(log[PLAIN][2], checksum=99)
    assert len(list(invariants.find_lost_records([writer], log))) == 1


def test_a_duplicate_record_is_found(log: Log, writer: IdempotentWriter) -> None:
    log[PLAIN].append(ObservedRecord(RECORDS, "w0", (RECORDS - 1,), RECORDS - 1))
    assert len(list(invariants.find_duplicates_and_gaps([writer], log))) == 1


def test_records_out_of_order_are_found(log: Log, writer: IdempotentWriter) -> None:
    first, second, *more = log[PLAIN]
    log[PLAIN] = [replace(second, offset=0), replace(first, offset=1), *more]
    assert len(list(invariants.find_duplicates_and_gaps([writer], log))) == 1


def test_a_record_that_was_read_and_lost_is_found(log: Log, reader: Reader) -> None:
    log[PLAIN].pop()
    assert len(list(invariants.find_wrong_reads([reader], log, log))) == 1


def test_a_record_that_was_read_twice_or_never_is_found(log: Log, reader: Reader) -> None:
    reader.observed[PLAIN].insert(0, reader.observed[PLAIN][0])
    reader.observed[TRANSACTIONAL].pop()
    assert len(list(invariants.find_wrong_reads([reader], log, log))) == 2


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
def test_partial_or_contradictory_transactions_are_found(
    log: Log,
    transactional: TransactionalWriter,
    outcome: Outcome,
    records: int,
    is_broken: bool,
) -> None:
    transactional.transactions[0].outcome = outcome
    del log[TRANSACTIONAL][records:]
    assert bool(list(invariants.find_partial_transactions([transactional], log))) is is_broken
