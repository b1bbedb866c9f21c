"""The log lines of consumer groups: every change with its reason, and nothing at a steady state."""

import logging
from collections.abc import Iterator

import pytest
from tests.coordinator.consumer.harness import (
    GROUP,
    INTERVAL_MS,
    SESSION_MS,
    ConsumerHarness,
    Member,
    joining,
)
from tests.log_records import barnabas_log_lines

from barnabas.coordinator.groups.consumer.events import member_joined
from barnabas.coordinator.groups.consumer.member import ConsumerMember
from barnabas.wire.errors import ErrorCode, KafkaError


@pytest.fixture
def harness(caplog: pytest.LogCaptureFixture) -> Iterator[ConsumerHarness]:
    harness = ConsumerHarness()
    harness.topic("t", 4)
    with caplog.at_level(logging.INFO, "barnabas.coordinator"):
        yield harness


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Returns the lines since the last call."""
    logged = [line.removeprefix(f"[GroupId {GROUP}] ") for line in barnabas_log_lines(caplog)]
    caplog.clear()
    return logged


def test_a_join_is_logged_with_the_epoch_and_the_assignment_that_it_causes(
    harness: ConsumerHarness, caplog: pytest.LogCaptureFixture
) -> None:
    Member(harness, "a").join("t")
    join, bump, target, state = lines(caplog)
    assert join.startswith("Member a joins the consumer group using the consumer protocol (client")
    assert bump == "Bumped group epoch to 2 (reason: member a joined)."
    assert target == (
        "Computed a new target assignment for epoch 2 with 'uniform' assignor: "
        "4 partitions for 1 members."
    )
    assert state == (
        "Member a new assignment state: epoch=2, previousEpoch=0, state=STABLE, "
        "assignedPartitions=[t-0, t-1, t-2, t-3] and revokedPartitions=[]."
    )


def test_a_change_is_logged_when_it_is_committed(
    harness: ConsumerHarness, caplog: pytest.LogCaptureFixture
) -> None:
    harness.environment.log.is_committing = False
    harness.send("a", 0, **joining(["t"]))
    assert lines(caplog) == []
    harness.environment.log.commit()
    assert len(lines(caplog)) == 4


def test_a_change_that_is_lost_with_its_leader_is_not_logged(
    harness: ConsumerHarness, caplog: pytest.LogCaptureFixture
) -> None:
    epoch = harness.stable("a")
    lines(caplog)
    harness.environment.log.is_committing = False
    harness.send("a", -1)
    assert harness.group.epoch == epoch + 1
    harness.environment.log.lose_leadership()
    assert lines(caplog) == []


def test_a_deletion_that_cannot_be_written_is_not_logged(
    harness: ConsumerHarness, caplog: pytest.LogCaptureFixture
) -> None:
    harness.stable("a")
    harness.heartbeat("a", -1)
    lines(caplog)
    harness.environment.log.append_error = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS, "One is left.")
    harness.environment.coordinator.delete([GROUP])
    assert lines(caplog) == []


def test_heartbeats_that_change_nothing_are_not_logged(
    harness: ConsumerHarness, caplog: pytest.LogCaptureFixture
) -> None:
    epoch = harness.stable("a", "b")
    lines(caplog)
    for member in "a", "b", "a":
        harness.heartbeat(member, epoch)
    assert lines(caplog) == []


def test_a_member_that_revokes_and_one_that_is_assigned_are_logged(
    harness: ConsumerHarness, caplog: pytest.LogCaptureFixture
) -> None:
    first, second = Member(harness, "a"), Member(harness, "b")
    first.join("t")
    harness.advance(INTERVAL_MS)
    second.join("t")
    lines(caplog)
    first.heartbeat()
    (revoking,) = lines(caplog)
    assert "Member a new assignment state: epoch=2" in revoking
    assert "state=UNREVOKED_PARTITIONS, assignedPartitions=[t-0, t-1]" in revoking
    assert revoking.endswith("revokedPartitions=[t-2, t-3].")


def test_members_that_leave_or_time_out_are_logged_with_what_follows(
    harness: ConsumerHarness, caplog: pytest.LogCaptureFixture
) -> None:
    epoch = harness.stable("a", "b")
    lines(caplog)
    harness.heartbeat("a", -1)
    assert lines(caplog) == [
        "Member a left the consumer group.",
        f"Bumped group epoch to {epoch + 1} (reason: member a left).",
    ]
    harness.advance(SESSION_MS)
    assert lines(caplog) == [
        "Member b fenced from the group because the member session expired.",
        f"Bumped group epoch to {epoch + 2} (reason: the session of member b expired).",
        f"The group with epoch {epoch + 2} is now empty.",
    ]
    harness.environment.coordinator.delete([GROUP])
    assert lines(caplog) == ["The group g is deleted, with offsets of 0 partitions"]


def test_a_static_member_is_logged_with_its_instance_id(
    harness: ConsumerHarness, caplog: pytest.LogCaptureFixture
) -> None:
    static = Member(harness, "s1", "i")
    static.join("t")
    assert lines(caplog)[0].startswith("Static member s1 with instance id i joins the consumer")
    harness.heartbeat("s1", -2, instance_id="i")
    assert lines(caplog) == [
        "Static member s1 with instance id i temporarily left the consumer group."
    ]
    Member(harness, "s2", "i").join("t")
    assert lines(caplog)[0] == (
        "Static member with instance id i re-joins the consumer group. "
        "Created a new member s2 to replace the existing member s1."
    )


def test_new_partitions_are_the_reason_of_an_epoch(
    harness: ConsumerHarness, caplog: pytest.LogCaptureFixture
) -> None:
    epoch = harness.stable("a")
    lines(caplog)
    harness.topic("t", 6)
    harness.advance(INTERVAL_MS)
    harness.heartbeat("a", epoch)
    bump = f"Bumped group epoch to {epoch + 1} (reason: its topics or their partitions changed)."
    assert bump in lines(caplog)


def test_a_line_lists_a_few_partitions_and_counts_the_others(
    harness: ConsumerHarness, caplog: pytest.LogCaptureFixture
) -> None:
    harness.topic("many", 1_000)
    Member(harness, "a").join("many")
    *_, state = lines(caplog)
    assert "assignedPartitions=[many-0, many-1, " in state
    assert ", many-9 and 990 more]" in state


@pytest.mark.parametrize(
    ("client_id", "client"), [("app", "(client id app at 10.0.0.1)"), ("", "(10.0.0.1)")]
)
def test_a_join_names_the_client_id_if_there_is_one(
    caplog: pytest.LogCaptureFixture, client_id: str, client: str
) -> None:
    caplog.set_level(logging.INFO, "barnabas.coordinator")
    member = ConsumerMember(member_id="a", client_id=client_id, client_host="/10.0.0.1")
    member_joined(GROUP, member)
    assert lines(caplog)[0].endswith(f"protocol {client}.")
