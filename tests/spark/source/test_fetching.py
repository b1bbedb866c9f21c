"""How a task gets its records: past failures that pass, and in few requests."""

import pytest

from barnabas.spark.source.connection import SourceError
from barnabas.testing import Broker


def numbers(rows) -> list[int]:
    return sorted(int(value) for value in rows.column("value").to_pylist())


@pytest.mark.parametrize("error", ["NOT_LEADER_OR_FOLLOWER", "UNKNOWN_TOPIC_ID"])
def test_a_leader_that_moves_is_found_again(error: str, broker: Broker, topic_of, reads) -> None:
    topic = topic_of(10)
    with broker.faults.fail("Fetch", error, times=2):
        assert numbers(reads.batch(topic.name)) == [*range(10)]


def test_a_connection_that_breaks_is_made_again(broker: Broker, topic_of, reads) -> None:
    topic = topic_of(10)
    with broker.faults.drop("Fetch", times=3):
        assert numbers(reads.batch(topic.name)) == [*range(10)]


def test_what_does_not_pass_is_told_after_the_time_that_was_given(
    broker: Broker, topic_of, reads
) -> None:
    topic = topic_of(1, partitions=1)
    patience = {"kafkaConsumer.pollTimeoutMs": 300}
    with (
        broker.faults.fail("Fetch", "LEADER_NOT_AVAILABLE"),
        pytest.raises(SourceError, match=rf"{topic.name} \[0\] could not be read for 300 ms"),
    ):
        reads.batch(topic.name, **patience)


def test_what_may_not_be_read_is_told_at_once(broker: Broker, topic_of, reads) -> None:
    topic = topic_of(1, partitions=1)
    with (
        broker.faults.fail("Fetch", "TOPIC_AUTHORIZATION_FAILED"),
        pytest.raises(SourceError, match=rf"{topic.name} \[0\]: .*uthoriz"),
    ):
        reads.batch(topic.name)


def test_many_partitions_cost_few_requests(broker: Broker, topic_of, reads) -> None:
    topic = topic_of(200, partitions=100)
    before = broker.faults.seen.copy()
    rows = reads.batch(topic.name)
    assert numbers(rows) == [*range(200)]
    asked = broker.faults.seen - before
    assert asked["ListOffsets"] <= 2
    assert asked["Fetch"] <= 5


def test_no_more_is_fetched_than_there_is_room_for(broker: Broker, topic_of, reads) -> None:
    topic = topic_of(2000, partitions=1)
    small = {"kafka.max.partition.fetch.bytes": 200, "kafka.fetch.max.bytes": 200}
    assert numbers(reads.batch(topic.name, **small)) == [*range(2000)]
