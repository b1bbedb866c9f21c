"""SyncGroup: the leader's assignment reaches every member of its generation, and no other."""

import logging

import pytest
from tests.coordinator.classic.harness import DELAY_MS, ClassicHarness
from tests.coordinator.environment import code_of
from tests.log_records import barnabas_log_lines

from barnabas.coordinator.groups.classic.group import ClassicState
from barnabas.wire.errors import ErrorCode, KafkaError


@pytest.fixture
def harness() -> ClassicHarness:
    return ClassicHarness()


@pytest.fixture
def pair(harness: ClassicHarness) -> tuple[str, str]:
    """Leader and follower of a generation without an assignment."""
    leader, _ = harness.enter()
    follower, _ = harness.enter()
    harness.advance(DELAY_MS * 2)
    assert harness.group.state is ClassicState.COMPLETING_REBALANCE
    return leader, follower


def test_followers_wait_for_the_leaders_assignment(
    harness: ClassicHarness, pair: tuple[str, str]
) -> None:
    leader, follower = pair
    waiting = harness.sync(follower, 1)
    assert not waiting.is_done
    leading = harness.sync(leader, 1, {leader: b"L", follower: b"F"})
    assert leading.result().assignment == b"L"
    assert waiting.result().assignment == b"F"
    assert waiting.result().protocol_type == "consumer"
    assert waiting.result().protocol_name == "range"
    assert harness.group.state is ClassicState.STABLE


def test_a_follower_that_syncs_late_gets_its_assignment(
    harness: ClassicHarness, pair: tuple[str, str]
) -> None:
    leader, follower = pair
    harness.sync(leader, 1, {follower: b"F"})
    assert harness.sync(follower, 1).result().assignment == b"F"
    assert harness.sync(follower, 1).result().assignment == b"F"


def test_a_member_without_an_assignment_gets_an_empty_one(
    harness: ClassicHarness, pair: tuple[str, str]
) -> None:
    leader, follower = pair
    harness.sync(leader, 1, {leader: b"L", "nobody": b"N"})
    assert harness.sync(follower, 1).result().assignment == b""


def test_an_assignment_from_a_follower_is_ignored(
    harness: ClassicHarness, pair: tuple[str, str]
) -> None:
    leader, follower = pair
    waiting = harness.sync(follower, 1, {follower: b"mine"})
    harness.sync(leader, 1, {follower: b"F"})
    assert waiting.result().assignment == b"F"


def test_a_repeated_request_gets_the_same_response(
    harness: ClassicHarness, pair: tuple[str, str]
) -> None:
    leader, follower = pair
    twice = [harness.sync(follower, 1), harness.sync(follower, 1)]
    harness.sync(leader, 1, {follower: b"F"})
    assert [each.result().assignment for each in twice] == [b"F", b"F"]


def test_no_member_gets_an_assignment_before_it_is_committed(
    harness: ClassicHarness, pair: tuple[str, str]
) -> None:
    leader, follower = pair
    harness.environment.log.is_committing = False
    waiting = harness.sync(follower, 1)
    leading = harness.sync(leader, 1, {leader: b"L", follower: b"F"})
    assert not waiting.is_done
    assert not leading.is_done
    assert harness.group.state is ClassicState.COMPLETING_REBALANCE
    harness.environment.log.commit()
    assert waiting.result().assignment == b"F"
    assert leading.result().assignment == b"L"


def test_a_leader_that_syncs_twice_assigns_once(
    harness: ClassicHarness, pair: tuple[str, str]
) -> None:
    leader, _ = pair
    harness.environment.log.is_committing = False
    first = harness.sync(leader, 1, {leader: b"first"})
    second = harness.sync(leader, 1, {leader: b"second"})
    harness.environment.log.commit()
    assert first.result().assignment == second.result().assignment == b"first"
    assert len([each for each in harness.written if each.value.generation == 1]) == 1


def test_an_assignment_that_cannot_be_written_rebalances(
    harness: ClassicHarness, pair: tuple[str, str]
) -> None:
    leader, follower = pair
    waiting = harness.sync(follower, 1)
    harness.environment.log.append_error = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS)
    leading = harness.sync(leader, 1, {leader: b"L", follower: b"F"})
    assert leading.result().error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert waiting.result().error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert harness.group.state is ClassicState.PREPARING_REBALANCE
    assert harness.heartbeat(leader, 1) == ErrorCode.REBALANCE_IN_PROGRESS
    harness.environment.log.append_error = None
    harness.join(leader)
    assert harness.join(follower).result().generation_id == 2


def test_an_assignment_that_does_not_fit_into_a_record_fails_all_syncs(
    harness: ClassicHarness,
) -> None:
    long_name = "i" * 40_000
    leader, _ = harness.enter()
    joining = harness.join(instance=long_name)
    harness.advance(DELAY_MS * 2)
    waiting = harness.sync(joining.result().member_id, 1, instance=long_name)
    harness.sync(leader, 1, {})
    assert waiting.result().error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert harness.group.state is ClassicState.PREPARING_REBALANCE


def test_an_assignment_that_is_not_committed_in_time_rebalances(
    harness: ClassicHarness, pair: tuple[str, str]
) -> None:
    leader, _ = pair
    harness.environment.log.is_committing = False
    leading = harness.sync(leader, 1, {leader: b"L"})
    harness.advance(5_000)
    assert leading.result().error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert harness.group.state is ClassicState.PREPARING_REBALANCE


def test_an_assignment_committed_after_its_generation_is_ignored(
    harness: ClassicHarness, pair: tuple[str, str]
) -> None:
    leader, follower = pair
    harness.environment.log.is_committing = False
    leading = harness.sync(leader, 1, {leader: b"L", follower: b"F"})
    harness.join(follower, topics=("other",))
    assert leading.result().error_code == ErrorCode.REBALANCE_IN_PROGRESS
    harness.environment.log.commit()
    assert harness.group.state is ClassicState.PREPARING_REBALANCE
    assert all(not member.assignment for member in harness.group.members.values())


@pytest.mark.parametrize(
    ("terms", "code"),
    [
        ({"group": ""}, ErrorCode.INVALID_GROUP_ID),
        ({"group": "other"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"member_id": "nobody"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"member_id": ""}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"instance": "printer"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"generation": 0}, ErrorCode.ILLEGAL_GENERATION),
        ({"generation": 2}, ErrorCode.ILLEGAL_GENERATION),
        ({"protocol": "sticky"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocol_type": "connect"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocol": None}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocol_type": None}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocol": None, "protocol_type": None, "version": 4}, ErrorCode.NONE),
    ],
)
def test_a_sync_checks_group_member_generation_and_protocol(
    harness: ClassicHarness, terms: dict[str, object], code: ErrorCode
) -> None:
    (member,) = harness.stable()
    request = {"member_id": member, "generation": 1, **terms}
    assert code_of(harness.sync(**request)) == code  # type: ignore[arg-type]


def test_a_sync_while_a_rebalance_is_prepared_is_an_error(harness: ClassicHarness) -> None:
    leader, _ = harness.stable(2)
    harness.enter()
    assert code_of(harness.sync(leader, 1)) == ErrorCode.REBALANCE_IN_PROGRESS


def test_a_pending_member_cannot_sync(harness: ClassicHarness) -> None:
    response = harness.join().result()
    assert code_of(harness.sync(response.member_id, 0)) == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_rebalance_is_logged_from_its_reason_to_its_assignment(
    harness: ClassicHarness, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "barnabas.coordinator"):
        leader, _ = harness.stable(2)
    reason, stabilized, assigned = barnabas_log_lines(caplog)
    assert reason.startswith("Preparing to rebalance group g in state Empty with old generation 0")
    assert stabilized == "Stabilized group g generation 1 with 2 members"
    assert assigned == (
        f"Assignment received from leader {leader} for group g for generation 1. "
        "The group has 2 members, 0 of which are static."
    )
