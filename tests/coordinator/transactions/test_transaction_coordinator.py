"""Requests and responses: batches, old versions, and brokers that do not coordinate the id."""

import logging
from dataclasses import replace
from typing import Any

import pytest
from tests.coordinator.transactions.harness import FIRST_ID, Producer, TransactionHarness
from tests.log_records import barnabas_log_lines

from barnabas.coordinator.decision import CoordinatorDecision
from barnabas.coordinator.pending_response import PendingResponse
from barnabas.coordinator.transactions.metadata import LAST_ASSIGNED_EPOCH
from barnabas.coordinator.transactions.records import to_record
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.producer_ids import InitProducerIdRequest
from barnabas.wire.messages.transaction_descriptions import ListTransactionsRequest
from barnabas.wire.messages.transactions import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)

T0, T1 = ("t", 0), ("t", 1)


@pytest.fixture
def harness() -> TransactionHarness:
    return TransactionHarness()


def transaction(
    producer: Producer, *indexes: int, topic: str = "t", verify_only: bool = False
) -> AddPartitionsToTxnTransaction:
    return AddPartitionsToTxnTransaction(
        transactional_id=producer.transactional_id,
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        verify_only=verify_only,
        topics=[AddPartitionsToTxnTopic(name=topic, partitions=list(indexes))],
    )


def all_requests(harness: TransactionHarness, transactional_id: str) -> list[PendingResponse[Any]]:
    producer = Producer(transactional_id, FIRST_ID, 0)
    add = AddPartitionsToTxnRequest(transactions=[transaction(producer, 0)])
    offsets = AddOffsetsToTxnRequest(
        transactional_id=transactional_id, producer_id=FIRST_ID, producer_epoch=0, group_id="g"
    )
    return [
        harness.init(transactional_id),
        harness.coordinator.add_partitions(add, 5).map(
            lambda response: (
                response.results_by_transaction[0].topic_results[0].results_by_partition[0]
            )
        ),
        harness.coordinator.add_offsets(offsets, 4),
        harness.end(producer),
        harness.add(producer, 0),
        harness.coordinator.describe([transactional_id]).map(lambda states: states[0]),
    ]


def code_of(response: PendingResponse[Any]) -> ErrorCode:
    result = response.result()
    if isinstance(result, dict):
        (code,) = result.values()
    else:
        code = getattr(result, "error_code", None)
        code = result.partition_error_code if code is None else code
    return ErrorCode.of(code)


def test_a_broker_that_does_not_lead_is_not_the_coordinator(harness: TransactionHarness) -> None:
    harness.coordinator.runtime.on_resignation(0)
    codes = {code_of(response) for response in all_requests(harness, "x")}
    assert codes == {ErrorCode.NOT_COORDINATOR}


def test_a_list_waits_until_the_transactions_are_loaded(
    harness: TransactionHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("barnabas.coordinator.loader.RECORDS_PER_SLICE", 1)
    for number in range(50):
        harness.producer(f"x{number}")
    harness.coordinator.runtime.on_resignation(0)
    harness.coordinator.runtime.on_election(0, 9)
    codes = {code_of(response) for response in all_requests(harness, "x")}
    assert codes == {ErrorCode.COORDINATOR_LOAD_IN_PROGRESS}
    listed = harness.coordinator.list(ListTransactionsRequest())
    assert not listed.is_done
    while harness.coordinator.runtime.is_loading:
        harness.clock.advance(0)
    assert len(listed.result().transaction_states) == 50


def test_no_response_is_sent_before_its_records_are_committed(harness: TransactionHarness) -> None:
    producer = harness.producer()
    harness.log.is_committing = False
    first = harness.init("y")
    added = harness.add(producer, 0)
    verified = harness.coordinator.verify_or_add("x", producer.producer_id, 0, [T0], add=False)
    again = harness.add(producer, 0)
    listed = harness.coordinator.list(ListTransactionsRequest())
    responses: list[PendingResponse[Any]] = [first, added, verified, again, listed]
    assert not any(response.is_done for response in responses)
    harness.log.commit()
    assert all(response.is_done for response in responses)
    assert verified.result() == {T0: ErrorCode.NONE}


def test_a_producer_that_fences_another_in_its_transaction_is_logged(
    harness: TransactionHarness, caplog: pytest.LogCaptureFixture
) -> None:
    first = harness.producer()
    harness.add(first, 0)
    with caplog.at_level(logging.INFO, "barnabas.coordinator"):
        harness.init("x")
        second = harness.producer()
        harness.add(second, 0)
        harness.init("x", second)  # it aborts its own transaction after an error
    assert barnabas_log_lines(caplog) == [
        "The transaction of x is aborted: a new producer with this transactional id fences the "
        f"one that began it (producer id {first.producer_id}, epoch {first.epoch})"
    ]


def test_an_idempotent_producer_gets_a_new_id_each_time(harness: TransactionHarness) -> None:
    request = InitProducerIdRequest(
        transactional_id=None, transaction_timeout_ms=-1, producer_id=7, producer_epoch=3
    )
    ids = [harness.coordinator.init_producer_id(request, 5).result().producer_id for _ in range(3)]
    assert ids == [FIRST_ID, FIRST_ID + 1, FIRST_ID + 2]
    assert not harness.transactions.by_id


def test_without_producer_ids_only_existing_producers_continue(harness: TransactionHarness) -> None:
    harness.producer("old")
    harness.coordinator.producer_ids._remaining = range(0)
    harness.coordinator.producer_ids._next_block = range(0)
    harness.blocks.error = KafkaError(ErrorCode.REQUEST_TIMED_OUT)
    raised = harness.init("new").result()
    assert raised.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert (raised.producer_id, raised.producer_epoch) == (-1, -1)
    assert harness.producer("old").epoch == 1


def test_a_request_that_waited_for_a_producer_id_is_decided_on_the_state_by_then(
    harness: TransactionHarness,
) -> None:
    harness.coordinator.producer_ids._remaining = range(0)
    harness.coordinator.producer_ids._next_block = range(0)
    harness.blocks.held = []
    first, second = harness.init("x"), harness.init("x")
    assert not first.is_done
    harness.blocks.held[0].complete(range(70, 80))
    assert (first.result().producer_id, first.result().producer_epoch) == (70, 0)
    assert (second.result().producer_id, second.result().producer_epoch) == (70, 1)


def test_brokers_add_partitions_to_several_transactions_at_once(
    harness: TransactionHarness,
) -> None:
    one, two, zombie = harness.producer("one"), harness.producer("two"), harness.producer("three")
    harness.producer("three")
    harness.add(two, 0)
    request = AddPartitionsToTxnRequest(
        transactions=[
            transaction(one, 0, 1),
            transaction(two, 0, 1, verify_only=True),
            transaction(zombie, 0),
            transaction(Producer("", 1, 1), 0),
            transaction(one, 0, topic="gone"),
        ]
    )
    response = harness.coordinator.add_partitions(request, 5).result()
    assert [
        [
            (each.partition_index, ErrorCode.of(each.partition_error_code).name)
            for topic in result.topic_results
            for each in topic.results_by_partition
        ]
        for result in response.results_by_transaction
    ] == [
        [(0, "NONE"), (1, "NONE")],
        [(0, "NONE"), (1, "TRANSACTION_ABORTABLE")],
        [(0, "PRODUCER_FENCED")],
        [(0, "INVALID_REQUEST")],
        [(0, "UNKNOWN_TOPIC_OR_PARTITION")],
    ]
    assert harness.transactions.by_id["one"].partitions == {T0, T1}
    assert harness.transactions.by_id["two"].partitions == {T0}


def test_verifying_changes_nothing(harness: TransactionHarness) -> None:
    producer = harness.producer()
    harness.add(producer, 0)
    written = harness.log.end_offset
    verified = harness.coordinator.verify_or_add("x", producer.producer_id, 0, [T0, T1], add=False)
    assert verified.result() == {T0: ErrorCode.NONE, T1: ErrorCode.TRANSACTION_ABORTABLE}
    assert harness.log.end_offset == written


def test_partitions_that_are_in_already_write_nothing(harness: TransactionHarness) -> None:
    producer = harness.producer()
    harness.add(producer, 0, 1)
    written = harness.log.end_offset
    assert harness.add(producer, 1).result() == {T1: ErrorCode.NONE}
    assert harness.log.end_offset == written


def test_the_offsets_of_a_group_are_a_partition_like_others(harness: TransactionHarness) -> None:
    producer = harness.producer()
    request = AddOffsetsToTxnRequest(
        transactional_id="x", producer_id=producer.producer_id, producer_epoch=0, group_id="g"
    )
    harness.coordinator.add_offsets(request, 4)
    assert harness.transactions.by_id["x"].partitions == {("__consumer_offsets", 0)}
    harness.end(producer)
    assert harness.participants.requests[-1].partitions == [("__consumer_offsets", 0)]


def test_a_retry_at_the_last_epoch_succeeds_unlike_in_kafka(harness: TransactionHarness) -> None:
    producer = harness.producer()
    worn = replace(
        harness.transactions.by_id["x"],
        producer_epoch=LAST_ASSIGNED_EPOCH,
        last_producer_epoch=LAST_ASSIGNED_EPOCH - 1,
    )
    harness.coordinator.runtime.shard(0).write(
        lambda _: CoordinatorDecision([to_record(worn, 2)], None)
    )
    before = replace(producer, epoch=LAST_ASSIGNED_EPOCH - 1)
    assert harness.init("x", before).result().producer_epoch == LAST_ASSIGNED_EPOCH
    stale = replace(producer, epoch=5)
    assert harness.init("x", stale).result().error_code == ErrorCode.PRODUCER_FENCED


def test_a_client_of_version_2_can_be_served_before_its_feature_is_finalized(
    harness: TransactionHarness,
) -> None:
    harness.image.features["transaction.version"] = 0
    producer = harness.producer()
    harness.add(producer, 0)
    assert harness.end(producer).result().producer_epoch == 1
    harness.elect()
    assert harness.state_of() == "CompleteCommit"


def test_a_pattern_is_checked_even_where_there_is_nothing_to_match(
    harness: TransactionHarness,
) -> None:
    harness.coordinator.runtime.on_resignation(0)
    request = ListTransactionsRequest(transactional_id_pattern="(")
    listed = harness.coordinator.list(request).result()
    assert listed.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION
