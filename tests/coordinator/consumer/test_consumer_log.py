"""What is in the log: the records of a conversation as Kafka 4.3.1 writes them, and what a new
coordinator makes of logs that are old, compacted or strange."""

import pytest
from tests.coordinator.consumer.harness import GROUP, INTERVAL_MS, ConsumerHarness, report

from barnabas.coordinator.groups.consumer import records
from barnabas.coordinator.groups.consumer.member import ConsumerMember, MemberState
from barnabas.coordinator.records import CoordinatorRecord
from barnabas.wire.messages import group_records as wire


@pytest.fixture
def harness() -> ConsumerHarness:
    return ConsumerHarness()


def test_a_conversation_is_written_as_kafka_writes_it(harness: ConsumerHarness) -> None:
    topic_id = harness.topic("t", 4)
    start_ms = harness.environment.clock.now_ms
    harness.join("a", "t")
    harness.join("b", "t")
    harness.advance(INTERVAL_MS)
    harness.heartbeat("a", 2)
    harness.heartbeat("a", 2, topic_partitions=report([(topic_id, 0), (topic_id, 1)]))
    harness.heartbeat("b", 2)
    harness.heartbeat("a", -1)

    def joined(member_id: str) -> CoordinatorRecord:
        return records.member(
            GROUP,
            ConsumerMember(
                member_id,
                client_id="client",
                client_host="/10.0.0.1",
                rebalance_timeout_ms=30_000,
                subscribed_topic_names=frozenset({"t"}),
            ),
        )

    def owns(
        member_id: str, epochs: tuple[int, int], state: MemberState,
        assigned: dict[int, int], pending: dict[int, int],
    ) -> CoordinatorRecord:  # fmt: skip
        member = ConsumerMember(
            member_id,
            member_epoch=epochs[1],
            previous_member_epoch=epochs[0],
            state=state,
            assigned={topic_id: assigned} if assigned else {},
            pending_revocation={topic_id: pending} if pending else {},
        )
        return records.current_assignment(GROUP, member)

    stable, unrevoked = MemberState.STABLE, MemberState.UNREVOKED_PARTITIONS
    hashed = harness.group.metadata_hash
    assert harness.written == [
        joined("a"),
        records.group_epoch(GROUP, 2, hashed),
        records.target_assignment(GROUP, "a", {topic_id: frozenset(range(4))}),
        records.assignment_epoch(GROUP, 2, start_ms),
        owns("a", (0, 2), stable, dict.fromkeys(range(4), 2), {}),
        joined("b"),
        records.group_epoch(GROUP, 3, hashed),
        owns("b", (0, 2), stable, {}, {}),
        records.target_assignment(GROUP, "a", {topic_id: frozenset({0, 1})}),
        records.target_assignment(GROUP, "b", {topic_id: frozenset({2, 3})}),
        records.assignment_epoch(GROUP, 3, start_ms + INTERVAL_MS),
        owns("a", (2, 2), unrevoked, {0: 2, 1: 2}, {2: 2, 3: 2}),
        owns("a", (2, 3), stable, {0: 2, 1: 2}, {}),
        owns("b", (2, 3), stable, {2: 3, 3: 3}, {}),
        records.current_assignment_tombstone(GROUP, "a"),
        records.target_assignment_tombstone(GROUP, "a"),
        records.member_tombstone(GROUP, "a"),
        records.group_epoch(GROUP, 4, 0 if harness.group.is_empty else hashed),
    ]


def test_values_of_kafka_before_4_3_have_no_epochs_of_partitions(harness: ConsumerHarness) -> None:
    topic_id = b"t" * 16
    key = wire.ConsumerGroupCurrentMemberAssignmentKey(group_id=GROUP, member_id="m")
    value = wire.ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=7,
        previous_member_epoch=6,
        assigned_partitions=[wire.TopicPartitions(topic_id=topic_id, partitions=[0, 1])],
    )
    harness.groups.replay(CoordinatorRecord(key, value), -1)
    assert harness.group.members["m"].assigned == {topic_id: {0: 7, 1: 7}}


def test_a_state_of_the_future_is_unknown(harness: ConsumerHarness) -> None:
    key = wire.ConsumerGroupCurrentMemberAssignmentKey(group_id=GROUP, member_id="m")
    value = wire.ConsumerGroupCurrentMemberAssignmentValue(member_epoch=7, state=5)
    harness.groups.replay(CoordinatorRecord(key, value), -1)
    assert harness.group.members["m"].state is MemberState.UNKNOWN


def test_old_partition_metadata_is_deleted_at_the_next_change(harness: ConsumerHarness) -> None:
    epoch = harness.stable("m")
    key = wire.ConsumerGroupPartitionMetadataKey(group_id=GROUP)
    value = wire.ConsumerGroupPartitionMetadataValue(topics=[])
    harness.groups.replay(CoordinatorRecord(key, value), -1)
    assert harness.group.has_partition_metadata
    harness.heartbeat("m", epoch, subscribed_topic_names=["t", "u"])
    assert records.partition_metadata_tombstone(GROUP) in harness.written
    assert not harness.group.has_partition_metadata


def test_tombstones_of_unknown_keys_are_ignored(harness: ConsumerHarness) -> None:
    tombstones = [
        records.group_tombstone("x"),
        records.partition_metadata_tombstone("x"),
        *records.member_tombstones("x", "m"),
        records.assignment_epoch_tombstone("x"),
        records.regular_expression_tombstone("x", "r"),
    ]
    for record in tombstones:
        harness.groups.replay(record, -1)
    assert not harness.groups.by_id
    harness.stable("n")
    for record in (*records.member_tombstones(GROUP, "m"),
                   records.regular_expression_tombstone(GROUP, "r")):  # fmt: skip
        harness.groups.replay(record, -1)
    assert harness.group.members.keys() == {"n"}


def test_an_owner_replayed_before_the_release_stays_the_owner(harness: ConsumerHarness) -> None:
    topic_id = b"t" * 16
    old = ConsumerMember("old", member_epoch=2, assigned={topic_id: {0: 2}})
    new = ConsumerMember("new", member_epoch=3, assigned={topic_id: {0: 3}})
    for record in (
        records.current_assignment(GROUP, old),
        records.current_assignment(GROUP, new),
        *records.member_tombstones(GROUP, "old"),
    ):
        harness.groups.replay(record, -1)
    assert harness.group.owners == {topic_id: {0: "new"}}
