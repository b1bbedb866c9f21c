"""Classic groups in the log: what is written, and what comes back from it."""

import pytest
from tests.coordinator.classic.harness import DELAY_MS, GROUP, SESSION_MS, ClassicHarness

from barnabas.coordinator.groups.classic.group import ClassicGroup, ClassicState
from barnabas.coordinator.groups.classic.member import ClassicMember
from barnabas.coordinator.groups.classic.records import group_record
from barnabas.coordinator.groups.consumer.group import ConsumerGroup
from barnabas.coordinator.groups.state import GROUP_RECORDS
from barnabas.coordinator.records import encode
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.group_records import GroupMetadataKey

KAFKA_RECORDS = {
    "nobody yet": ("000200026731", "0003000000000000ffffffff000001a1e268fb5600000000"),
    "one member": (
        "000200026731",
        "00030008636f6e73756d657200000001000572616e6765002973616d652d35356166653337642d3330"
        "39382d346461652d383538372d633639653039633765363563000001a1e268fbec0000000100297361"
        "6d652d35356166653337642d333039382d346461652d383538372d633639653039633765363563ffff"
        "000473616d65000a2f3132372e302e302e310000753000007530000000150001000000010005706c61"
        "696effffffff000000000000000378797a",
    ),
    "all left": (
        "000200026731",
        "00030008636f6e73756d657200000002ffffffff000001a1e268fcc600000000",
    ),
}
"""As Kafka 4.3.1 wrote them, for a member that joined, was assigned `xyz`, and left."""


@pytest.fixture
def harness() -> ClassicHarness:
    return ClassicHarness()


@pytest.mark.parametrize("which", KAFKA_RECORDS)
def test_kafkas_records_are_read_and_written_byte_for_byte(
    harness: ClassicHarness, which: str
) -> None:
    key, value = (bytes.fromhex(each) for each in KAFKA_RECORDS[which])
    record = GROUP_RECORDS.decode(key, value)
    assert record is not None
    harness.groups.replay(record, -1)
    group = harness.groups.by_id["g1"]
    assert isinstance(group, ClassicGroup)
    assert group.state is (ClassicState.STABLE if which == "one member" else ClassicState.EMPTY)
    rewritten = encode(group_record(group), 0)
    assert (rewritten.key, rewritten.value) == (key, value)


@pytest.mark.parametrize("version", range(5))
def test_records_of_all_versions_are_read(harness: ClassicHarness, version: int) -> None:
    harness.join(instance="printer", session_ms=7_000, rebalance_ms=8_000)
    harness.advance(DELAY_MS)
    (member_id,) = harness.group.members
    harness.synced([member_id])
    record = group_record(harness.group)._replace(version=version)
    harness.environment.log.batches.clear()
    old = encode(record, 0)
    decoded = GROUP_RECORDS.decode(old.key or b"", old.value)
    assert decoded is not None
    harness.groups.replay(decoded, -1)
    member = harness.group.members[member_id]
    assert member.session_timeout_ms == 7_000
    assert member.rebalance_timeout_ms == (8_000 if version >= 1 else 7_000)
    assert (harness.group.state_since_ms is None) is (version < 2)
    assert member.instance_id == ("printer" if version >= 3 else None)


def test_a_loaded_group_is_the_group_that_was_written(harness: ClassicHarness) -> None:
    members = harness.stable(3, protocols=("range", "sticky"))
    static = harness.join(instance="printer", protocols=("sticky", "range"))
    for each in members:
        harness.join(each, protocols=("range", "sticky"))
    assert static.is_done
    harness.synced([*members, static.result().member_id])
    before, described = harness.group, likeness(harness.group)
    harness.lead()
    assert harness.group is not before
    assert likeness(harness.group) == described
    assert all(member.protocols.keys() == {"range"} for member in harness.group.members.values())


def likeness(group: ClassicGroup) -> object:
    """Everything that the next coordinator loads; of the protocols, the selected one."""

    def of(member: ClassicMember) -> object:
        return (
            member.instance_id,
            member.client_id,
            member.client_host,
            member.session_timeout_ms,
            member.rebalance_timeout_ms,
            member.metadata(group.protocol),
            member.assignment,
        )

    return (
        group.state,
        group.generation,
        group.protocol_type,
        group.protocol,
        group.leader,
        dict(group.static_members),
        group.subscribed_topics,
        {member_id: of(member) for member_id, member in group.members.items()},
    )


def test_members_continue_with_another_coordinator(harness: ClassicHarness) -> None:
    leader, follower = harness.stable(2)
    harness.lead()
    for member in leader, follower:
        assert harness.heartbeat(member, 1) == ErrorCode.NONE
        assert harness.sync(member, 1).result().assignment == member.encode()
    assert harness.join(follower).result().generation_id == 1


def test_loading_restarts_all_sessions(harness: ClassicHarness) -> None:
    harness.stable(2)
    harness.advance(SESSION_MS - 1)
    harness.lead()
    harness.advance(SESSION_MS - 1)
    assert len(harness.group.members) == 2
    harness.advance(1)
    assert harness.group.state is ClassicState.EMPTY


def test_a_generation_without_an_assignment_does_not_outlive_its_coordinator(
    harness: ClassicHarness,
) -> None:
    (old,) = harness.stable()
    _, joining = harness.enter()
    harness.join(old)
    assert joining.result().generation_id == 2
    harness.lead()
    assert (harness.group.state, harness.group.generation) == (ClassicState.STABLE, 1)
    assert list(harness.group.members) == [old]


def test_a_new_group_is_in_the_log_before_it_has_members(harness: ClassicHarness) -> None:
    harness.join()
    (record,) = harness.written
    assert (record.version, record.value.protocol_type, record.value.generation) == (3, "", 0)
    harness.lead()
    assert harness.group.is_empty
    assert harness.group.protocol_type == ""


# What cannot be written


def test_a_group_that_cannot_be_written_is_not_created(harness: ClassicHarness) -> None:
    harness.environment.log.append_error = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS)
    raised = harness.join()
    assert isinstance(raised.error, KafkaError)
    assert raised.error.code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert not harness.groups.by_id
    assert harness.alarm_count == 0


def test_a_join_to_a_group_that_cannot_be_written_fails(harness: ClassicHarness) -> None:
    harness.environment.log.append_error = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS)
    raised = harness.join(instance="printer").result()
    assert raised.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert not harness.groups.by_id
    assert harness.alarm_count == 0


def test_a_group_with_a_generation_is_not_removed_when_its_first_record_fails() -> None:
    harness = ClassicHarness(group_initial_rebalance_delay_ms=0)
    harness.environment.log.is_committing = False
    joining = harness.join(instance="printer")
    harness.advance(0)
    harness.advance(5_000)
    assert joining.result().generation_id == 1
    assert len(harness.group.members) == 1


def test_an_empty_generation_that_cannot_be_written_is_empty_in_memory(
    harness: ClassicHarness,
) -> None:
    harness.stable(session_ms=6_000)
    harness.environment.log.append_error = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS)
    harness.advance(10_000)
    assert harness.group.state is ClassicState.EMPTY
    assert harness.alarm_count == 0


# Resigning


def test_pending_joins_get_not_coordinator_after_the_resignation(harness: ClassicHarness) -> None:
    harness.stable()
    new, joining = harness.enter()
    harness.lead()
    assert joining.result().error_code == ErrorCode.NOT_COORDINATOR
    assert joining.result().member_id == new


def test_pending_syncs_get_not_coordinator_after_the_resignation(harness: ClassicHarness) -> None:
    leader, _ = harness.enter()
    follower, _ = harness.enter()
    harness.advance(DELAY_MS * 2)
    waiting = harness.sync(follower, 1)
    harness.environment.log.is_committing = False
    leading = harness.sync(leader, 1, {})
    harness.lead()
    assert waiting.result().error_code == ErrorCode.NOT_COORDINATOR
    assert leading.result().error_code == ErrorCode.NOT_COORDINATOR


# Groups of another kind


def test_an_empty_consumer_group_is_replaced(harness: ClassicHarness) -> None:
    harness.groups.by_id[GROUP] = ConsumerGroup(GROUP, harness.groups.subscriptions)
    harness.join()
    assert harness.group.pending
    *tombstones, founding = harness.written
    assert all(record.value is None for record in tombstones)
    assert tombstones
    assert isinstance(founding.key, GroupMetadataKey)


def test_an_empty_consumer_group_stays_if_the_classic_one_cannot_be_written(
    harness: ClassicHarness,
) -> None:
    former = harness.groups.by_id[GROUP] = ConsumerGroup(GROUP, harness.groups.subscriptions)
    harness.environment.log.append_error = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS)
    harness.join()
    assert harness.groups.by_id[GROUP] is former
