"""How a leader responds to fetches, commits, and resigns."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.raft.stepped_node import (
    ELECTION_MS,
    NONE,
    TIMEOUTS,
    Member,
    key,
    leader,
    log_of,
    voters_of,
)

from barnabas.log import EpochEndOffset
from barnabas.raft.messages import (
    BeginEpochRequest,
    EpochResponse,
    FetchOutcome,
    HighWatermark,
    SendBeginEpoch,
)
from barnabas.raft.roles import Follower, Leader, Resigned, Unattached
from barnabas.raft.snapshots import SnapshotId
from barnabas.raft.voters import ReplicaKey, VoterNode, VoterSet
from barnabas.wire.errors import ErrorCode
from barnabas.wire.uuid import ZERO

CHECK_QUORUM_MS = TIMEOUTS.fetch_ms * 3 // 2


# Fetches


@pytest.mark.parametrize(
    ("epoch", "offset", "last_epoch", "error"),
    [
        (6, 0, 0, ErrorCode.FENCED_LEADER_EPOCH),
        (8, 0, 0, ErrorCode.UNKNOWN_LEADER_EPOCH),
        (7, -1, 0, ErrorCode.INVALID_REQUEST),
        (7, 0, -1, ErrorCode.INVALID_REQUEST),
        (7, 0, 8, ErrorCode.INVALID_REQUEST),
        (7, 0, 0, NONE),
    ],
)
def test_invalid_fetches_are_rejected(
    epoch: int, offset: int, last_epoch: int, error: ErrorCode
) -> None:
    raft = leader(epoch=6).raft
    assert raft.leadership.on_fetch_request(key(2), epoch, offset, last_epoch, 0).error is error


def test_a_node_that_does_not_lead_rejects_fetches() -> None:
    raft = Member(epoch=7).raft
    verdict = raft.leadership.on_fetch_request(key(2), 7, 0, 0, 0)
    assert verdict == FetchOutcome(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert (
        raft.leadership.on_fetch_snapshot_request(key(2), 7, 0) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    )


@pytest.mark.parametrize(
    ("offset", "last_epoch", "diverging"),
    [
        (0, 0, None),
        (2, 1, None),
        (3, 3, None),
        (5, 3, None),
        (6, 6, None),
        (3, 1, EpochEndOffset(1, 2)),  # it has more of epoch 1
        (4, 2, EpochEndOffset(1, 2)),  # epoch 2 is not known here
        (6, 3, EpochEndOffset(3, 5)),
        (9, 5, EpochEndOffset(3, 5)),
    ],
)
def test_a_fetcher_that_diverged_gets_the_end_of_its_last_epoch(
    offset: int, last_epoch: int, diverging: EpochEndOffset | None
) -> None:
    member = leader(log=log_of(1, 1, 3, 3, 3), epoch=5)  # then one record of epoch 6
    verdict = member.raft.leadership.on_fetch_request(key(2), 6, offset, last_epoch, 0)
    assert verdict == FetchOutcome(diverging=diverging)


@pytest.mark.parametrize(
    ("offset", "last_epoch", "sent"),
    [
        (0, 0, True),
        (2, 1, True),
        (3, 1, True),  # it ends where the log begins, with another record
        (4, 1, True),  # its epoch is older than the snapshot's
        (3, 3, False),
        (5, 3, False),
    ],
)
def test_a_fetcher_below_the_log_start_gets_a_snapshot_id(
    offset: int, last_epoch: int, sent: bool
) -> None:
    log = log_of(1, 1, 3, 3, 3)
    log.take_snapshot(3)
    member = leader(log=log, epoch=5)
    verdict = member.raft.leadership.on_fetch_request(key(2), 6, offset, last_epoch, 0)
    assert verdict == FetchOutcome(snapshot=SnapshotId(3, 3) if sent else None)


def test_a_diverging_fetch_is_no_progress() -> None:
    member = leader()
    assert member.raft.leadership.on_fetch_request(key(2), 1, 9, 1, 0).diverging is not None
    assert member.raft.high_watermark == 0


# Commits


def test_records_of_earlier_epochs_commit_with_the_first_record_of_the_new_epoch() -> None:
    member = leader(log=log_of(1, 1), epoch=1)
    role = member.raft.role
    assert isinstance(role, Leader)
    member.fetch(2, 2)
    assert (member.raft.high_watermark, role.high_watermark) == (0, -1)
    member.fetch(2, 3)
    assert (member.raft.high_watermark, role.high_watermark) == (3, 3)
    assert member.raft.take_effects() == [HighWatermark(3)]


def test_a_leader_counts_itself_only_up_to_its_durable_end() -> None:
    member = leader()
    member.append(flushed=False)
    member.fetch(2, 2)
    assert member.raft.high_watermark == 1
    member.raft.on_flushed(2, 0)
    assert member.raft.high_watermark == 2


def test_followers_may_commit_records_before_the_leader_flushed_them() -> None:
    member = leader()
    member.append(flushed=False)
    member.fetch(2, 2)
    member.fetch(3, 2)
    assert member.raft.high_watermark == 2


def test_fetches_of_observers_do_not_commit() -> None:
    member = leader()
    for observer in (4, 5, 6, -1):
        member.fetch(observer, 1)
    assert member.raft.high_watermark == 0


def test_fetches_of_a_voter_with_another_directory_do_not_commit() -> None:
    member = leader()
    member.raft.leadership.on_fetch_request(ReplicaKey(2, key(9).directory_id), 1, 1, 1, 0)
    assert member.raft.high_watermark == 0


def test_a_voter_without_known_directory_commits_from_any_directory() -> None:
    member = Member(VoterSet(VoterNode(item, ZERO, ()) for item in (1, 2, 3)))
    member.wait_for_timer()
    member.respond(2)
    member.respond(2)
    member.append()
    member.fetch(2, 1)
    assert member.raft.high_watermark == 1


@given(st.lists(st.tuples(st.integers(1, 5), st.integers(min_value=0, max_value=20)), max_size=40))
def test_the_high_watermark_never_falls_nor_passes_the_majority(
    steps: list[tuple[int, int]],
) -> None:
    member = leader((1, 2, 3, 4, 5))
    member.append(19, flushed=False)
    ends = dict.fromkeys(range(1, 6), 0) | {1: 1}
    before = 0
    for node_id, offset in steps:
        ends[node_id] = max(ends[1], offset) if node_id == 1 else offset
        if node_id == 1:
            member.raft.on_flushed(ends[1], 0)
        else:
            member.fetch(node_id, offset)
        after = member.raft.high_watermark
        assert after >= before
        if after > before:
            assert sum(end >= after for end in ends.values()) >= 3
        before = after


# Check-quorum


def test_a_leader_without_fetches_of_a_majority_resigns() -> None:
    member = leader((1, 2, 3, 4, 5))
    member.wait(CHECK_QUORUM_MS - 1)
    member.fetch(2)
    member.wait(1)
    assert isinstance(member.raft.role, Resigned)


def test_a_leader_with_fetches_of_a_majority_does_not_resign() -> None:
    member = leader((1, 2, 3, 4, 5))
    for node_id in (2, 3, 4, 5, 2, 3):
        member.wait(CHECK_QUORUM_MS // 3)
        member.fetch(node_id)
    assert member.raft.is_leader


def test_a_snapshot_fetch_counts_for_check_quorum() -> None:
    member = leader()
    for _ in range(5):
        member.wait(CHECK_QUORUM_MS - 1)
        assert member.raft.leadership.on_fetch_snapshot_request(key(3), 1, member.now_ms) is NONE
    assert member.raft.is_leader


def test_fetches_of_observers_do_not_count_for_check_quorum() -> None:
    member = leader()
    member.wait(CHECK_QUORUM_MS - 1)
    member.fetch(4)
    member.wait(1)
    assert not member.raft.is_leader


def test_a_resigned_leader_enters_a_new_epoch() -> None:
    member = leader()
    member.raft.leadership.resign(0)
    assert member.raft.leader_id == 1
    assert member.raft.fetch_source() is None
    member.wait(ELECTION_MS)
    assert member.raft.epoch == 2


def test_a_leader_of_a_newer_epoch_is_followed() -> None:
    member = leader()
    member.raft.on_leader_and_epoch(3, 4, 0)
    assert isinstance(member.raft.role, Follower)
    member = leader()
    member.raft.on_leader_and_epoch(-1, 4, 0)
    assert isinstance(member.raft.role, Unattached)


# Announcements


def test_a_new_leader_announces_itself_until_it_is_acknowledged() -> None:
    member = leader()
    sent = member.raft.pending_requests()
    assert sent == [
        SendBeginEpoch(key(item), BeginEpochRequest(1, 1, key(item))) for item in (2, 3)
    ]
    member.raft.election.on_begin_epoch_response(2, EpochResponse(NONE, 1, 1), 0)
    member.fetch(3, 0)
    assert member.raft.pending_requests() == []


def test_a_leader_announces_itself_again_to_voters_that_do_not_fetch() -> None:
    member = leader()
    member.fetch(2, 0)
    member.fetch(3, 0)
    member.wait(TIMEOUTS.fetch_ms // 2 - 1)
    member.fetch(2, 0)
    member.wait(1)
    assert [item.voter for item in member.raft.pending_requests()] == [key(3)]


# Voters that change


def test_new_voters_are_part_of_the_majority_at_once() -> None:
    member = leader((1,))
    assert member.raft.high_watermark == 1
    member.append(flushed=False)
    member.raft.on_voters_changed(voters_of(1, 2), 1, 0)
    member.raft.on_flushed(2, 0)
    assert member.raft.high_watermark == 1
    assert [item.voter for item in member.raft.pending_requests()] == [key(2)]
    member.fetch(2, 2)
    assert member.raft.high_watermark == 2


def test_the_progress_of_an_observer_counts_once_it_votes() -> None:
    member = leader((1, 2))
    member.fetch(3, 1)
    member.append()
    member.raft.on_voters_changed(voters_of(1, 2, 3), 1, 0)
    assert member.raft.high_watermark == 1


def test_a_removed_leader_leads_until_its_removal_is_committed() -> None:
    member = leader()
    member.fetch(2)
    member.append()
    member.raft.on_voters_changed(voters_of(2, 3), 1, 0)
    member.fetch(2)
    assert member.raft.is_leader
    assert member.raft.high_watermark == 1
    member.fetch(3)
    assert member.raft.high_watermark == 2
    assert isinstance(member.raft.role, Resigned)
    member.wait(10 * ELECTION_MS)
    assert isinstance(member.raft.role, Unattached)


def test_a_removed_leader_needs_a_majority_without_itself() -> None:
    member = leader()
    member.append()
    member.raft.on_voters_changed(voters_of(2, 3), 1, 0)
    member.wait(CHECK_QUORUM_MS - 1)
    member.fetch(2, 0)
    member.wait(1)
    assert not member.raft.is_leader


def test_a_truncated_removal_of_a_voter_is_undone() -> None:
    member = Member(epoch=5, leader_id=3)
    member.raft.on_voters_changed(voters_of(2, 3), 4, 0)
    assert not member.raft.is_voter
    member.raft.on_voters_changed(voters_of(1, 2, 3), -1, 0)
    assert member.raft.is_voter


# What DescribeQuorum reports


def test_a_replica_is_caught_up_when_it_has_what_the_leader_had_at_its_last_fetch() -> None:
    member = leader()
    role = member.raft.role
    assert isinstance(role, Leader)
    for now_ms, offset, last_caught_up_ms in [(10, 0, -1), (20, 1, 20)]:
        member.now_ms = now_ms
        member.fetch(2, offset)
        assert role.progress.get_or_add(key(2), now_ms).last_caught_up_ms == last_caught_up_ms
    member.append(3)
    for now_ms, offset, last_caught_up_ms in [(30, 2, 20), (40, 3, 20), (50, 4, 50)]:
        member.now_ms = now_ms
        member.fetch(2, offset)
        assert role.progress.get_or_add(key(2), now_ms).last_caught_up_ms == last_caught_up_ms
    member.append()
    member.now_ms = 60
    member.fetch(2, 4)
    assert role.progress.get_or_add(key(2), 60).last_caught_up_ms == 50


def test_observers_without_fetches_expire() -> None:
    member = leader()
    role = member.raft.role
    assert isinstance(role, Leader)
    member.fetch(7)
    forgotten_ms = member.now_ms + 300_000
    assert [item.key for item in role.progress.observers_progress(forgotten_ms - 1)] == [key(7)]
    assert role.progress.observers_progress(forgotten_ms) == []
