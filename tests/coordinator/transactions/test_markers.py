"""The markers of a transaction, from the decision to the last partition, and their errors."""

import pytest
from tests.coordinator.transactions.harness import Producer, TransactionHarness
from tests.log_records import barnabas_log_lines

from barnabas.coordinator.transactions.markers import FIRST_BACKOFF_MS, MAX_BACKOFF_MS
from barnabas.metadata.delta import MetadataDelta
from barnabas.metadata.states import TopicImage
from barnabas.wire.errors import ErrorCode, KafkaError

T0, T1 = ("t", 0), ("t", 1)


@pytest.fixture
def harness() -> TransactionHarness:
    return TransactionHarness()


def ongoing(harness: TransactionHarness, *indexes: int) -> Producer:
    producer = harness.producer()
    assert set(harness.add(producer, *indexes).result().values()) == {ErrorCode.NONE}
    for index in indexes:
        harness.participants.append(producer.producer_id, producer.epoch, ("t", index))
    return producer


def outcomes(harness: TransactionHarness, producer: Producer) -> dict[int, list[bool]]:
    return {
        index: participant.outcomes
        for (producer_id, (_, index)), participant in harness.participants.partitions.items()
        if producer_id == producer.producer_id
    }


def test_local_markers_are_written_before_the_response(harness: TransactionHarness) -> None:
    producer = ongoing(harness, 0, 1)
    response = harness.end(producer)
    assert response.is_done
    assert harness.state_of() == "CompleteCommit"
    assert outcomes(harness, producer) == {0: [True], 1: [True]}
    following = producer.after(response.result())
    assert harness.add(following, 0).result() == {T0: ErrorCode.NONE}
    assert not harness.transactions.markers.pending


def test_a_marker_has_producer_epochs_and_outcome(harness: TransactionHarness) -> None:
    producer = ongoing(harness, 0)
    harness.end(producer)
    (request,) = harness.participants.requests
    assert request.marker == (producer.producer_id, 1, harness.epoch, True, 2)
    harness.image.features["transaction.version"] = 1
    following = Producer("x", producer.producer_id, 1)
    harness.add(following, 0)
    harness.end(following, committed=False, version=4)
    assert harness.participants.requests[-1].marker == (producer.producer_id, 1, 1, False, 0)


def test_no_marker_is_sent_before_the_outcome_is_committed(harness: TransactionHarness) -> None:
    producer = ongoing(harness, 0)
    harness.log.is_committing = False
    response = harness.end(producer)
    assert not response.is_done
    assert not harness.participants.requests
    harness.log.commit()
    assert harness.participants.requests
    harness.log.commit()
    assert response.result().error_code == ErrorCode.NONE
    assert harness.state_of() == "CompleteCommit"


def test_markers_of_an_outcome_that_is_committed_late_are_sent_late(
    harness: TransactionHarness,
) -> None:
    producer = ongoing(harness, 0)
    harness.log.is_committing = False
    response = harness.end(producer)
    harness.advance(120_000)
    assert response.result().error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    again = harness.end(producer)
    assert again.result().error_code == ErrorCode.CONCURRENT_TRANSACTIONS
    assert not harness.participants.requests
    harness.log.is_committing = True
    harness.log.commit()
    harness.advance(60_000)
    assert outcomes(harness, producer) == {0: [True]}
    assert harness.end(producer).result().error_code == ErrorCode.NONE


def test_an_outcome_that_cannot_be_written_is_not_decided(harness: TransactionHarness) -> None:
    producer = ongoing(harness, 0)
    harness.log.append_error = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS)
    response = harness.end(producer).result()
    assert response.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    harness.log.append_error = None
    harness.advance(5_000)
    assert harness.state_of() == "Ongoing"
    assert harness.end(producer, committed=False).result().error_code == ErrorCode.NONE
    assert outcomes(harness, producer) == {0: [False]}


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.UNKNOWN_SERVER_ERROR,
    ],
)
def test_a_partition_with_a_retriable_error_gets_its_marker_later(
    harness: TransactionHarness, code: ErrorCode
) -> None:
    producer = ongoing(harness, 0, 1)
    harness.participants.errors[T1] = code
    response = harness.end(producer).result()
    assert response.error_code == ErrorCode.NONE, "the outcome is decided all the same"
    following = producer.after(response)
    assert harness.state_of() == "PrepareCommit"
    assert harness.add(following, 0).result() == {T0: ErrorCode.CONCURRENT_TRANSACTIONS}
    harness.advance(10_000)
    assert harness.participants.requests[-1].partitions == [T1], "no second marker"
    del harness.participants.errors[T1]
    harness.advance(MAX_BACKOFF_MS)
    assert harness.state_of() == "CompleteCommit"
    assert outcomes(harness, producer) == {0: [True], 1: [True]}
    assert harness.add(following, 0).result() == {T0: ErrorCode.NONE}


def test_partitions_that_hold_up_a_transaction_are_named_once_in_the_log(
    harness: TransactionHarness, caplog: pytest.LogCaptureFixture
) -> None:
    producer = ongoing(harness, 0, 1)
    harness.participants.errors |= dict.fromkeys((T0, T1), ErrorCode.NOT_LEADER_OR_FOLLOWER)
    harness.end(producer)
    harness.advance(100_000)
    (line,) = barnabas_log_lines(caplog)
    assert line.endswith(
        "the transaction of x waits for its markers in t-0, t-1: NOT_LEADER_OR_FOLLOWER"
    )


def test_the_marker_backoff_grows_and_is_bounded(harness: TransactionHarness) -> None:
    producer = ongoing(harness, 0)
    harness.participants.errors[T0] = ErrorCode.NOT_LEADER_OR_FOLLOWER
    harness.end(producer)
    harness.advance(2_000)
    early = len(harness.participants.requests)
    harness.advance(100_000)
    assert 5 < early < 10
    assert len(harness.participants.requests) - early == 100_000 // MAX_BACKOFF_MS


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.UNSUPPORTED_VERSION,
        ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
    ],
)
def test_a_partition_that_cannot_have_the_transaction_needs_no_marker(
    harness: TransactionHarness, code: ErrorCode
) -> None:
    producer = ongoing(harness, 0, 1)
    harness.participants.errors[T1] = code
    harness.end(producer)
    assert harness.state_of() == "CompleteCommit"


def test_a_coordinator_that_was_replaced_leaves_the_end_to_its_successor(
    harness: TransactionHarness,
) -> None:
    producer = ongoing(harness, 0)
    harness.participants.of(producer.producer_id, T0).coordinator_epoch = harness.epoch + 1
    harness.end(producer)
    harness.advance(600_000)
    assert len(harness.participants.requests) == 1
    assert harness.state_of() == "PrepareCommit"
    harness.elect()
    harness.advance(0)
    assert harness.state_of() == "CompleteCommit"


def test_a_lost_marker_response_is_retried(harness: TransactionHarness) -> None:
    producer = ongoing(harness, 0)
    harness.participants.is_holding = True
    harness.end(producer)
    harness.participants.is_holding = False
    (request,) = harness.participants.held
    harness.participants.write(request)
    request.answer.fail(TimeoutError())
    harness.advance(MAX_BACKOFF_MS)
    assert harness.state_of() == "CompleteCommit"
    assert outcomes(harness, producer) == {0: [True]}


def test_a_partition_missing_in_the_response_is_retried(harness: TransactionHarness) -> None:
    producer = ongoing(harness, 0, 1)
    harness.participants.is_holding = True
    harness.end(producer)
    harness.participants.is_holding = False
    harness.participants.held[0].answer.complete({T0: ErrorCode.NONE})
    harness.advance(MAX_BACKOFF_MS)
    assert harness.participants.requests[-1].partitions == [T1]
    assert harness.state_of() == "CompleteCommit"


def test_a_deleted_topic_is_not_waited_for(harness: TransactionHarness) -> None:
    harness.create_topic("u", 1)
    producer = ongoing(harness, 0)
    harness.coordinator.verify_or_add("x", producer.producer_id, 0, [("u", 0)], add=True)
    harness.participants.errors[("u", 0)] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    harness.end(producer)
    assert harness.state_of() == "PrepareCommit"
    harness.delete_topic("u")
    harness.advance(MAX_BACKOFF_MS)
    assert harness.state_of() == "CompleteCommit"


def test_a_transaction_whose_topics_are_all_deleted_ends_at_once(
    harness: TransactionHarness,
) -> None:
    producer = ongoing(harness, 0)
    harness.delete_topic("t")
    harness.end(producer)
    assert harness.state_of() == "CompleteCommit"
    assert not harness.participants.requests


def test_the_complete_record_is_retried_until_it_is_written(harness: TransactionHarness) -> None:
    producer = ongoing(harness, 0)
    harness.participants.is_holding = True
    harness.end(producer)
    harness.log.append_error = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS)
    harness.participants.deliver(harness.participants.held[0])
    harness.advance(5_000)
    assert harness.state_of() == "PrepareCommit"
    harness.log.append_error = None
    harness.advance(MAX_BACKOFF_MS)
    assert harness.state_of() == "CompleteCommit"
    assert len(harness.participants.requests) == 1


def test_a_marker_response_after_the_resignation_changes_nothing(
    harness: TransactionHarness,
) -> None:
    producer = ongoing(harness, 0)
    harness.participants.is_holding = True
    harness.end(producer)
    (request,) = harness.participants.held
    harness.log.lose_leadership()
    harness.coordinator.runtime.close()
    written = harness.log.end_offset
    harness.participants.deliver(request)
    harness.advance(60_000)
    assert harness.log.end_offset == written


def test_a_description_has_the_partitions_without_a_marker(harness: TransactionHarness) -> None:
    producer = ongoing(harness, 0, 1)
    harness.participants.errors[T1] = ErrorCode.NOT_LEADER_OR_FOLLOWER
    harness.end(producer)
    (described,) = harness.coordinator.describe(["x"]).result()
    assert described.transaction_state == "PrepareCommit"
    assert [(topic.topic, topic.partitions) for topic in described.topics] == [("t", [1])]


def test_a_topic_that_no_shard_knows_yet_is_returned(harness: TransactionHarness) -> None:
    harness.image = harness.image.copy()
    known = harness.image.topics.by_name("t")
    assert known is not None
    harness.image.topics.add(TopicImage("u", b"u" * 16, known.partitions))
    producer = harness.producer()
    harness.coordinator.verify_or_add("x", producer.producer_id, 0, [("u", 0)], add=True)
    harness.end(producer)
    assert harness.participants.requests[-1].partitions == [("u", 0)]


# Partitions that are led by several brokers


def led_apart(harness: TransactionHarness) -> Producer:
    """A transaction in one partition here and in one that broker 2 leads, which is slow."""
    producer = ongoing(harness, 0, 1)
    harness.participants.leaders[T1] = 2
    harness.participants.is_holding = True
    harness.end(producer)
    return producer


def change_hands(
    harness: TransactionHarness, partition: tuple[str, int], leader: int | None
) -> None:
    harness.participants.leaders[partition] = leader
    topic = harness.image.topics.by_name(partition[0])
    assert topic is not None
    index = partition[1]
    delta = MetadataDelta(partitions_changed={(topic.topic_id, index): topic.partitions[index]})
    harness.coordinator.runtime.on_metadata_update(delta, harness.image)


def test_each_leader_gets_the_markers_of_its_own_partitions(harness: TransactionHarness) -> None:
    producer = led_apart(harness)
    here, there = harness.participants.held
    assert (here.partitions, there.partitions) == ([T0], [T1])
    harness.participants.deliver(there)
    assert outcomes(harness, producer) == {0: [], 1: [True]}
    assert harness.state_of() == "PrepareCommit"
    harness.participants.deliver(here)
    assert harness.state_of() == "CompleteCommit"


def test_a_slow_leader_does_not_delay_retries_to_others(harness: TransactionHarness) -> None:
    led_apart(harness)
    here, _ = harness.participants.held
    here.answer.complete({T0: ErrorCode.NOT_LEADER_OR_FOLLOWER})
    harness.advance(FIRST_BACKOFF_MS)
    assert [each.partitions for each in harness.participants.held] == [[T0], [T1], [T0]]


def test_a_marker_in_flight_is_not_sent_twice(harness: TransactionHarness) -> None:
    led_apart(harness)
    harness.advance(60_000)
    change_hands(harness, T1, 3)
    assert len(harness.participants.held) == 2


def test_a_partition_gets_its_marker_as_soon_as_it_has_a_leader(
    harness: TransactionHarness,
) -> None:
    producer = ongoing(harness, 0)
    harness.participants.leaders[T0] = None
    harness.end(producer)
    harness.advance(10_000)
    assert not harness.participants.requests
    change_hands(harness, T0, 2)
    assert harness.state_of() == "CompleteCommit"


def test_a_partition_with_an_error_is_retried_at_once_when_its_leader_changes(
    harness: TransactionHarness,
) -> None:
    producer = ongoing(harness, 0)
    harness.participants.errors[T0] = ErrorCode.NOT_LEADER_OR_FOLLOWER
    harness.end(producer)
    harness.advance(10_000)
    del harness.participants.errors[T0]
    change_hands(harness, ("t", 3), 2)
    assert harness.state_of() == "PrepareCommit"
    change_hands(harness, T0, 2)
    assert harness.state_of() == "CompleteCommit"
    assert outcomes(harness, producer) == {0: [True]}


def test_a_partition_deleted_in_flight_needs_no_marker(harness: TransactionHarness) -> None:
    harness.create_topic("u", 1)
    producer = ongoing(harness, 0)
    harness.coordinator.verify_or_add("x", producer.producer_id, 0, [("u", 0)], add=True)
    harness.participants.leaders["u", 0] = 2
    harness.participants.is_holding = True
    harness.end(producer)
    harness.delete_topic("u")
    here = next(each for each in harness.participants.held if each.partitions == [T0])
    here.answer.complete({T0: ErrorCode.NOT_LEADER_OR_FOLLOWER})
    harness.participants.is_holding = False
    harness.advance(FIRST_BACKOFF_MS)
    assert harness.state_of() == "CompleteCommit"


def test_markers_of_a_coordinator_that_resigned_are_not_needed(harness: TransactionHarness) -> None:
    led_apart(harness)
    assert all(each.is_needed() for each in harness.participants.held)
    harness.log.lose_leadership()
    harness.coordinator.runtime.close()
    assert not any(each.is_needed() for each in harness.participants.held)


def test_an_uncommitted_outcome_is_dropped_with_the_leadership(harness: TransactionHarness) -> None:
    producer = ongoing(harness, 0)
    committed = harness.log.end_offset
    harness.log.is_committing = False
    response = harness.end(producer)
    harness.log.lose_leadership()
    harness.log.truncate_to(committed)
    harness.log.is_committing = True
    harness.elect()
    harness.advance(60_000)
    assert response.result().error_code == ErrorCode.NOT_COORDINATOR
    assert harness.state_of() == "Ongoing"
    assert not harness.participants.requests


def test_a_new_coordinator_sends_no_marker_before_its_log_is_committed(
    harness: TransactionHarness,
) -> None:
    producer = ongoing(harness, 0)
    harness.log.is_committing = False
    harness.end(producer)
    harness.elect()
    harness.advance(60_000)
    assert harness.state_of() == "PrepareCommit"
    assert not harness.participants.requests
    harness.log.is_committing = True
    harness.log.commit()
    harness.advance(1_000)
    assert outcomes(harness, producer) == {0: [True]}
