"""From the decision to the last partition: markers, their errors, and who may go on when."""

import pytest
from tests.coordinator.transactions.house import House, Producer

from barnabas.coordinator.transactions.markers import FIRST_BACKOFF_MS, MAX_BACKOFF_MS
from barnabas.metadata.delta import MetadataDelta
from barnabas.metadata.states import TopicImage
from barnabas.wire.errors import ErrorCode, KafkaError

T0, T1 = ("t", 0), ("t", 1)


@pytest.fixture
def house() -> House:
    return House()


def ongoing(house: House, *indexes: int) -> Producer:
    producer = house.producer()
    assert set(house.add(producer, *indexes).result().values()) == {ErrorCode.NONE}
    for index in indexes:
        house.participants.append(producer.producer_id, producer.epoch, ("t", index))
    return producer


def outcomes(house: House, producer: Producer) -> dict[int, list[bool]]:
    return {
        index: participant.outcomes
        for (producer_id, (_, index)), participant in house.participants.partitions.items()
        if producer_id == producer.producer_id
    }


def test_all_is_done_before_the_answer_leaves_if_all_partitions_are_here(house: House) -> None:
    producer = ongoing(house, 0, 1)
    answer = house.end(producer)
    assert answer.is_done
    assert house.state_of() == "CompleteCommit"
    assert outcomes(house, producer) == {0: [True], 1: [True]}
    following = producer.after(answer.result())
    assert house.add(following, 0).result() == {T0: ErrorCode.NONE}
    assert not house.transactions.markers.pending


def test_a_marker_says_who_ended_what(house: House) -> None:
    producer = ongoing(house, 0)
    house.end(producer)
    (request,) = house.participants.requests
    assert request.marker == (producer.producer_id, 1, house.epoch, True, 2)
    house.image.features["transaction.version"] = 1
    following = Producer("x", producer.producer_id, 1)
    house.add(following, 0)
    house.end(following, committed=False, version=4)
    assert house.participants.requests[-1].marker == (producer.producer_id, 1, 1, False, 0)


def test_no_partition_is_told_before_the_outcome_is_committed(house: House) -> None:
    producer = ongoing(house, 0)
    house.log.committing = False
    answer = house.end(producer)
    assert not answer.is_done
    assert not house.participants.requests
    house.log.commit()
    assert house.participants.requests
    house.log.commit()
    assert answer.result().error_code == ErrorCode.NONE
    assert house.state_of() == "CompleteCommit"


def test_an_outcome_that_is_committed_late_is_told_late(house: House) -> None:
    producer = ongoing(house, 0)
    house.log.committing = False
    answer = house.end(producer)
    house.advance(120_000)
    assert answer.result().error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    again = house.end(producer)
    assert again.result().error_code == ErrorCode.CONCURRENT_TRANSACTIONS
    assert not house.participants.requests
    house.log.committing = True
    house.log.commit()
    house.advance(60_000)
    assert outcomes(house, producer) == {0: [True]}
    assert house.end(producer).result().error_code == ErrorCode.NONE


def test_an_outcome_that_the_log_refuses_is_none(house: House) -> None:
    producer = ongoing(house, 0)
    house.log.refusal = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS)
    answer = house.end(producer).result()
    assert answer.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    house.log.refusal = None
    house.advance(5_000)
    assert house.state_of() == "Ongoing"
    assert house.end(producer, committed=False).result().error_code == ErrorCode.NONE
    assert outcomes(house, producer) == {0: [False]}


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
def test_a_partition_that_cannot_be_told_now_is_told_later(house: House, code: ErrorCode) -> None:
    producer = ongoing(house, 0, 1)
    house.participants.errors[T1] = code
    answer = house.end(producer).result()
    assert answer.error_code == ErrorCode.NONE, "the outcome is decided all the same"
    following = producer.after(answer)
    assert house.state_of() == "PrepareCommit"
    assert house.add(following, 0).result() == {T0: ErrorCode.CONCURRENT_TRANSACTIONS}
    house.advance(10_000)
    assert house.participants.requests[-1].partitions == [T1], "who knows is not told again"
    del house.participants.errors[T1]
    house.advance(MAX_BACKOFF_MS)
    assert house.state_of() == "CompleteCommit"
    assert outcomes(house, producer) == {0: [True], 1: [True]}
    assert house.add(following, 0).result() == {T0: ErrorCode.NONE}


def test_the_waits_between_attempts_grow_and_are_bounded(house: House) -> None:
    producer = ongoing(house, 0)
    house.participants.errors[T0] = ErrorCode.NOT_LEADER_OR_FOLLOWER
    house.end(producer)
    house.advance(2_000)
    early = len(house.participants.requests)
    house.advance(100_000)
    assert 5 < early < 10
    assert len(house.participants.requests) - early == 100_000 // MAX_BACKOFF_MS


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.UNSUPPORTED_VERSION,
        ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
    ],
)
def test_a_partition_that_never_takes_the_marker_is_let_go(house: House, code: ErrorCode) -> None:
    producer = ongoing(house, 0, 1)
    house.participants.errors[T1] = code
    house.end(producer)
    assert house.state_of() == "CompleteCommit"


def test_a_coordinator_that_was_replaced_leaves_the_end_to_its_successor(house: House) -> None:
    producer = ongoing(house, 0)
    house.participants.of(producer.producer_id, T0).coordinator_epoch = house.epoch + 1
    house.end(producer)
    house.advance(600_000)
    assert len(house.participants.requests) == 1
    assert house.state_of() == "PrepareCommit"
    house.elect()
    house.advance(0)
    assert house.state_of() == "CompleteCommit"


def test_a_lost_answer_is_asked_for_again(house: House) -> None:
    producer = ongoing(house, 0)
    house.participants.is_holding = True
    house.end(producer)
    house.participants.is_holding = False
    (request,) = house.participants.held
    house.participants.write(request)
    request.answer.fail(TimeoutError())
    house.advance(MAX_BACKOFF_MS)
    assert house.state_of() == "CompleteCommit"
    assert outcomes(house, producer) == {0: [True]}


def test_a_partition_that_the_answer_leaves_out_is_told_again(house: House) -> None:
    producer = ongoing(house, 0, 1)
    house.participants.is_holding = True
    house.end(producer)
    house.participants.is_holding = False
    house.participants.held[0].answer.complete({T0: ErrorCode.NONE})
    house.advance(MAX_BACKOFF_MS)
    assert house.participants.requests[-1].partitions == [T1]
    assert house.state_of() == "CompleteCommit"


def test_a_deleted_topic_is_not_waited_for(house: House) -> None:
    house.create_topic("u", 1)
    producer = ongoing(house, 0)
    house.coordinator.verify_or_add("x", producer.producer_id, 0, [("u", 0)], add=True)
    house.participants.errors[("u", 0)] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    house.end(producer)
    assert house.state_of() == "PrepareCommit"
    house.delete_topic("u")
    house.advance(MAX_BACKOFF_MS)
    assert house.state_of() == "CompleteCommit"


def test_a_transaction_whose_topics_are_all_deleted_ends_at_once(house: House) -> None:
    producer = ongoing(house, 0)
    house.delete_topic("t")
    house.end(producer)
    assert house.state_of() == "CompleteCommit"
    assert not house.participants.requests


def test_the_last_record_is_tried_until_the_log_takes_it(house: House) -> None:
    producer = ongoing(house, 0)
    house.participants.is_holding = True
    house.end(producer)
    house.log.refusal = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS)
    house.participants.deliver(house.participants.held[0])
    house.advance(5_000)
    assert house.state_of() == "PrepareCommit"
    house.log.refusal = None
    house.advance(MAX_BACKOFF_MS)
    assert house.state_of() == "CompleteCommit"
    assert len(house.participants.requests) == 1


def test_an_answer_that_comes_after_resigning_changes_nothing(house: House) -> None:
    producer = ongoing(house, 0)
    house.participants.is_holding = True
    house.end(producer)
    (request,) = house.participants.held
    house.log.lose_leadership()
    house.coordinator.runtime.close()
    written = house.log.end_offset
    house.participants.deliver(request)
    house.advance(60_000)
    assert house.log.end_offset == written


def test_who_describes_sees_what_is_left_to_tell(house: House) -> None:
    producer = ongoing(house, 0, 1)
    house.participants.errors[T1] = ErrorCode.NOT_LEADER_OR_FOLLOWER
    house.end(producer)
    (described,) = house.coordinator.describe(["x"]).result()
    assert described.transaction_state == "PrepareCommit"
    assert [(topic.topic, topic.partitions) for topic in described.topics] == [("t", [1])]


def test_a_topic_that_no_shard_has_heard_of_yet_is_told_too(house: House) -> None:
    house.image = house.image.copy()
    known = house.image.topics.by_name("t")
    assert known is not None
    house.image.topics.add(TopicImage("u", b"u" * 16, known.partitions))
    producer = house.producer()
    house.coordinator.verify_or_add("x", producer.producer_id, 0, [("u", 0)], add=True)
    house.end(producer)
    assert house.participants.requests[-1].partitions == [("u", 0)]


# Partitions that are led by several brokers


def led_apart(house: House) -> Producer:
    """A transaction in one partition here and in one that broker 2 leads, which is slow."""
    producer = ongoing(house, 0, 1)
    house.participants.leaders[T1] = 2
    house.participants.is_holding = True
    house.end(producer)
    return producer


def change_hands(house: House, partition: tuple[str, int], leader: int | None) -> None:
    house.participants.leaders[partition] = leader
    topic = house.image.topics.by_name(partition[0])
    assert topic is not None
    index = partition[1]
    delta = MetadataDelta(partitions_changed={(topic.topic_id, index): topic.partitions[index]})
    house.coordinator.runtime.on_metadata_update(delta, house.image)


def test_each_leader_is_told_of_its_own_partitions_and_answers_for_itself(house: House) -> None:
    producer = led_apart(house)
    here, there = house.participants.held
    assert (here.partitions, there.partitions) == ([T0], [T1])
    house.participants.deliver(there)
    assert outcomes(house, producer) == {0: [], 1: [True]}
    assert house.state_of() == "PrepareCommit"
    house.participants.deliver(here)
    assert house.state_of() == "CompleteCommit"


def test_a_leader_that_is_slow_does_not_keep_others_from_being_told_again(house: House) -> None:
    led_apart(house)
    here, _ = house.participants.held
    here.answer.complete({T0: ErrorCode.NOT_LEADER_OR_FOLLOWER})
    house.advance(FIRST_BACKOFF_MS)
    assert [each.partitions for each in house.participants.held] == [[T0], [T1], [T0]]


def test_who_waits_for_an_answer_is_not_told_twice(house: House) -> None:
    led_apart(house)
    house.advance(60_000)
    change_hands(house, T1, 3)
    assert len(house.participants.held) == 2


def test_a_partition_without_a_leader_is_told_as_soon_as_it_has_one(house: House) -> None:
    producer = ongoing(house, 0)
    house.participants.leaders[T0] = None
    house.end(producer)
    house.advance(10_000)
    assert not house.participants.requests
    change_hands(house, T0, 2)
    assert house.state_of() == "CompleteCommit"


def test_one_that_refused_is_told_at_once_when_it_changes_hands(house: House) -> None:
    producer = ongoing(house, 0)
    house.participants.errors[T0] = ErrorCode.NOT_LEADER_OR_FOLLOWER
    house.end(producer)
    house.advance(10_000)
    del house.participants.errors[T0]
    change_hands(house, ("t", 3), 2)
    assert house.state_of() == "PrepareCommit"
    change_hands(house, T0, 2)
    assert house.state_of() == "CompleteCommit"
    assert outcomes(house, producer) == {0: [True]}


def test_a_partition_deleted_while_it_is_told_is_not_waited_for(house: House) -> None:
    house.create_topic("u", 1)
    producer = ongoing(house, 0)
    house.coordinator.verify_or_add("x", producer.producer_id, 0, [("u", 0)], add=True)
    house.participants.leaders["u", 0] = 2
    house.participants.is_holding = True
    house.end(producer)
    house.delete_topic("u")
    here = next(each for each in house.participants.held if each.partitions == [T0])
    here.answer.complete({T0: ErrorCode.NOT_LEADER_OR_FOLLOWER})
    house.participants.is_holding = False
    house.advance(FIRST_BACKOFF_MS)
    assert house.state_of() == "CompleteCommit"


def test_nobody_wants_the_markers_of_a_coordinator_that_resigned(house: House) -> None:
    led_apart(house)
    assert all(each.is_wanted() for each in house.participants.held)
    house.log.lose_leadership()
    house.coordinator.runtime.close()
    assert not any(each.is_wanted() for each in house.participants.held)


def test_an_outcome_that_was_not_committed_is_forgotten_with_the_leadership(house: House) -> None:
    producer = ongoing(house, 0)
    committed = house.log.end_offset
    house.log.committing = False
    answer = house.end(producer)
    house.log.lose_leadership()
    house.log.truncate_to(committed)
    house.log.committing = True
    house.elect()
    house.advance(60_000)
    assert answer.result().error_code == ErrorCode.NOT_COORDINATOR
    assert house.state_of() == "Ongoing"
    assert not house.participants.requests


def test_a_new_coordinator_tells_nobody_before_what_it_loaded_is_committed(house: House) -> None:
    producer = ongoing(house, 0)
    house.log.committing = False
    house.end(producer)
    house.elect()
    house.advance(60_000)
    assert house.state_of() == "PrepareCommit"
    assert not house.participants.requests
    house.log.committing = True
    house.log.commit()
    house.advance(1_000)
    assert outcomes(house, producer) == {0: [True]}
