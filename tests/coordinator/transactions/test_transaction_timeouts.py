"""What time does: too long a transaction is aborted, an unused id forgotten."""

import logging
from dataclasses import replace
from typing import Any

import pytest
from tests.coordinator.transactions.harness import TransactionHarness
from tests.log_records import barnabas_log_lines

from barnabas.coordinator.decision import CoordinatorDecision
from barnabas.coordinator.transactions.metadata import LAST_ASSIGNED_EPOCH
from barnabas.coordinator.transactions.records import to_record
from barnabas.coordinator.transactions.timeouts import ABORTED_AT_ONCE, EXPIRED_AT_ONCE
from barnabas.wire.errors import ErrorCode, KafkaError

ABORT_INTERVAL_MS = 10_000
EXPIRY_INTERVAL_MS = 3_600_000
EXPIRATION_MS = 7 * 24 * EXPIRY_INTERVAL_MS


@pytest.fixture(params=[1, 2])
def harness(request: pytest.FixtureRequest) -> TransactionHarness:
    return TransactionHarness(transaction_version=request.param)


@pytest.fixture
def slow_harness() -> TransactionHarness:
    """A harness where weeks pass quickly: time-outs are looked for but hourly."""
    return TransactionHarness(
        transaction_abort_timed_out_transaction_cleanup_interval_ms=EXPIRY_INTERVAL_MS
    )


def test_a_transaction_is_aborted_when_it_lasts_longer_than_its_timeout(
    harness: TransactionHarness,
) -> None:
    producer = harness.producer(timeout_ms=25_000)
    harness.add(producer, 0)
    harness.advance(24_000)
    harness.add(producer, 1)  # being busy is no excuse
    harness.advance(1_000)
    assert harness.state_of() == "Ongoing"
    harness.advance(ABORT_INTERVAL_MS)
    assert harness.state_of() == "CompleteAbort"
    (request,) = harness.participants.requests
    assert not request.marker.committed
    assert request.marker.producer_epoch == producer.epoch + 1
    assert request.partitions == [("t", 0), ("t", 1)]


def test_an_abort_is_logged_once_it_is_written(
    harness: TransactionHarness, caplog: pytest.LogCaptureFixture
) -> None:
    harness.add(harness.producer(timeout_ms=1_000), 0)
    with caplog.at_level(logging.INFO, "barnabas.coordinator"):
        harness.log.append_error = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS, "One is left.")
        harness.advance(2 * ABORT_INTERVAL_MS)
        assert barnabas_log_lines(caplog) == []
        harness.log.append_error = None
        harness.advance(ABORT_INTERVAL_MS)
    assert barnabas_log_lines(caplog) == ["The transaction of x has timed out: it is aborted"]


def test_a_zombie_producer_is_fenced(harness: TransactionHarness) -> None:
    producer = harness.producer(timeout_ms=1_000)
    harness.add(producer, 0)
    harness.advance(2 * ABORT_INTERVAL_MS)
    assert set(harness.add(producer, 0).result().values()) == {ErrorCode.PRODUCER_FENCED}
    commit = harness.end(producer, version=4).result()
    assert commit.error_code == ErrorCode.PRODUCER_FENCED


def test_each_transaction_has_its_own_timeout(harness: TransactionHarness) -> None:
    producer = harness.producer(timeout_ms=15_000)
    for _ in range(10):
        harness.add(producer, 0)
        harness.advance(9_000)
        producer = producer.after(harness.end(producer).result())
    assert all(request.marker.committed for request in harness.participants.requests)
    harness.add(producer, 0)
    harness.advance(15_000 + ABORT_INTERVAL_MS)
    assert harness.state_of() == "CompleteAbort"


def test_a_shorter_timeout_of_the_next_incarnation_is_used(harness: TransactionHarness) -> None:
    producer = harness.producer(timeout_ms=900_000)
    harness.add(producer, 0)
    harness.end(producer, version=4)
    producer = harness.producer(timeout_ms=1_000)
    harness.add(producer, 0)
    harness.advance(2 * ABORT_INTERVAL_MS)
    assert harness.state_of() == "CompleteAbort"


def test_the_next_coordinator_aborts_what_timed_out_meanwhile(harness: TransactionHarness) -> None:
    producer = harness.producer(timeout_ms=1_000)
    harness.add(producer, 0)
    harness.coordinator.runtime.close()
    harness.advance(600_000)
    harness.elect()
    assert harness.state_of() == "Ongoing"
    harness.advance(ABORT_INTERVAL_MS)
    assert harness.state_of() == "CompleteAbort"


def test_an_abort_that_cannot_be_written_is_retried(harness: TransactionHarness) -> None:
    producer = harness.producer(timeout_ms=1_000)
    harness.add(producer, 0)
    harness.log.append_error = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS)
    harness.advance(5 * ABORT_INTERVAL_MS)
    assert harness.state_of() == "Ongoing"
    harness.log.append_error = None
    harness.advance(ABORT_INTERVAL_MS)
    assert harness.state_of() == "CompleteAbort"
    assert harness.transactions.by_id["x"].producer_epoch == producer.epoch + 1


def test_an_abort_at_the_last_epoch_waits_for_a_producer_id() -> None:
    harness = TransactionHarness()
    producer = harness.producer(timeout_ms=1_000)
    harness.add(producer, 0)
    worn = replace(harness.transactions.by_id["x"], producer_epoch=LAST_ASSIGNED_EPOCH)
    harness.coordinator.runtime.shard(0).write(
        lambda _: CoordinatorDecision([to_record(worn, 2)], None)
    )
    harness.blocks.error = TimeoutError()
    harness.coordinator.producer_ids._remaining = range(0)
    harness.coordinator.producer_ids._next_block = range(0)
    harness.advance(2 * ABORT_INTERVAL_MS)
    assert harness.state_of() == "Ongoing"
    harness.blocks.error = None
    harness.advance(ABORT_INTERVAL_MS)
    assert harness.state_of() == "CompleteAbort"
    assert harness.transactions.by_id["x"].producer_epoch == 0
    assert harness.transactions.by_id["x"].producer_id != producer.producer_id


def test_transactions_that_time_out_together_are_aborted_in_slices(
    harness: TransactionHarness,
) -> None:
    many = 3 * ABORTED_AT_ONCE
    for number in range(many):
        harness.add(harness.producer(f"x{number}", timeout_ms=1_000), 0)
    slices: list[int] = []

    def count(callback: Any) -> Any:
        before = len(harness.participants.requests)
        callback()
        slices.append(len(harness.participants.requests) - before)

    after = harness.clock.call_after
    harness.clock.call_after = lambda delay_ms, callback: after(delay_ms, lambda: count(callback))  # type: ignore[method-assign]
    harness.advance(2 * ABORT_INTERVAL_MS)
    assert sum(slices) == many - ABORTED_AT_ONCE  # the first timer was started before
    assert max(slices) == ABORTED_AT_ONCE


def test_an_unused_id_expires(slow_harness: TransactionHarness) -> None:
    slow_harness.producer("unused")
    slow_harness.add(slow_harness.producer("open", timeout_ms=900_000), 0)
    slow_harness.advance(EXPIRATION_MS - EXPIRY_INTERVAL_MS)
    slow_harness.producer("used")
    slow_harness.advance(2 * EXPIRY_INTERVAL_MS)
    assert "unused" not in slow_harness.transactions.by_id
    assert "used" in slow_harness.transactions.by_id
    assert slow_harness.values("unused")[-1] is None
    slow_harness.elect()
    assert "unused" not in slow_harness.transactions.by_id


def test_an_id_in_use_does_not_expire(slow_harness: TransactionHarness) -> None:
    for _ in range(5):
        slow_harness.producer()
        slow_harness.advance(EXPIRATION_MS - EXPIRY_INTERVAL_MS)
    assert "x" in slow_harness.transactions.by_id


def test_an_id_with_a_transaction_pending_never_expires(slow_harness: TransactionHarness) -> None:
    producer = slow_harness.producer()
    slow_harness.add(producer, 0)
    slow_harness.participants.errors["t", 0] = ErrorCode.NOT_LEADER_OR_FOLLOWER
    slow_harness.end(producer)
    slow_harness.participants.is_holding = True  # no partition responds any more
    slow_harness.advance(2 * EXPIRATION_MS)
    assert slow_harness.state_of() == "PrepareCommit"


def test_an_expired_id_can_be_initialized_again(slow_harness: TransactionHarness) -> None:
    first = slow_harness.producer()
    slow_harness.advance(EXPIRATION_MS + 2 * EXPIRY_INTERVAL_MS)
    assert set(slow_harness.add(first, 0).result().values()) == {
        ErrorCode.INVALID_PRODUCER_ID_MAPPING
    }
    second = slow_harness.producer()
    assert second.epoch == 0
    assert second.producer_id != first.producer_id


def test_ids_whose_expiration_cannot_be_written_are_retried(
    slow_harness: TransactionHarness,
) -> None:
    slow_harness.producer()
    slow_harness.log.append_error = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS)
    slow_harness.advance(EXPIRATION_MS + 5 * EXPIRY_INTERVAL_MS)
    assert "x" in slow_harness.transactions.by_id
    slow_harness.log.append_error = None
    slow_harness.advance(EXPIRY_INTERVAL_MS)
    assert "x" not in slow_harness.transactions.by_id


def test_many_ids_expire_together(slow_harness: TransactionHarness) -> None:
    for number in range(2 * EXPIRED_AT_ONCE + 5):
        slow_harness.producer(f"x{number}")
    slow_harness.advance(EXPIRATION_MS + 2 * EXPIRY_INTERVAL_MS)
    assert not slow_harness.transactions.by_id
    assert not len(slow_harness.transactions.idle)
