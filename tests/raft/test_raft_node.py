"""How a node follows a leader, and detects that it lost it."""

from tests.raft.stepped_node import NONE, TIMEOUTS, Member, log_of, vote

from barnabas.raft.messages import HighWatermark
from barnabas.raft.raft_node import ANY_NODE
from barnabas.raft.roles import NO_NODE, Follower, Prospective, Unattached
from barnabas.wire.errors import ErrorCode

NOT_LEADER = ErrorCode.NOT_LEADER_OR_FOLLOWER


def follower() -> Member:
    """Node 1, which hears of its leader 3 in epoch 5."""
    member = Member(epoch=5, leader_id=3, log=log_of(5, 5, 5, 5))
    assert member.raft.on_fetch_response(NONE, 3, 5, 0)
    member.raft.take_effects()
    return member


def test_a_node_without_a_leader_fetches_from_any_node() -> None:
    assert Member(epoch=5).raft.fetch_source() == ANY_NODE
    assert follower().raft.fetch_source() == 3


def test_a_response_that_names_the_leader_makes_the_node_follow_it() -> None:
    member = Member(epoch=4)
    assert member.raft.on_fetch_response(NONE, 3, 5, 0)
    assert isinstance(member.raft.role, Follower)


def test_only_a_successful_response_of_the_leader_may_change_the_log() -> None:
    for error, leader_id, epoch in [
        (NONE, 3, 4),
        (NONE, 2, 5),
        (ErrorCode.FENCED_LEADER_EPOCH, 3, 5),
        (NOT_LEADER, 3, 5),
        (NONE, NO_NODE, 6),
    ]:
        assert not follower().raft.on_fetch_response(error, leader_id, epoch, 0)


def test_a_newer_epoch_in_a_response_is_adopted() -> None:
    member = follower()
    member.raft.on_fetch_response(NOT_LEADER, NO_NODE, 6, 0)
    assert isinstance(member.raft.role, Unattached)
    member.raft.on_fetch_response(NOT_LEADER, 2, 7, 0)
    assert (member.raft.epoch, member.raft.fetch_source()) == (7, 2)


def test_a_follower_keeps_a_leader_that_responds() -> None:
    member = follower()
    for _ in range(10):
        member.wait(TIMEOUTS.fetch_ms - 1)
        assert member.raft.on_fetch_response(NONE, 3, 5, member.now_ms)
    member.wait(TIMEOUTS.fetch_ms)
    assert isinstance(member.raft.role, Prospective)


def test_an_error_response_does_not_extend_the_fetch_timeout() -> None:
    member = follower()
    member.wait(TIMEOUTS.fetch_ms - 1)
    member.raft.on_fetch_response(ErrorCode.BROKER_NOT_AVAILABLE, 3, 5, member.now_ms)
    member.wait(1)
    assert isinstance(member.raft.role, Prospective)


def test_a_voter_that_loses_its_connection_to_the_leader_requests_votes_at_once() -> None:
    member = follower()
    member.raft.on_leader_lost(0)
    assert member.raft.fetch_source() is None
    member.wait(50)
    assert isinstance(member.raft.role, Prospective)


def test_repeated_connection_losses_do_not_defer_the_election() -> None:
    member = follower()
    for _ in range(10):
        member.raft.on_leader_lost(member.now_ms)
        member.wait(5)
    assert isinstance(member.raft.role, Prospective)


def test_a_voter_that_lost_the_leader_follows_it_again_if_the_others_have_not() -> None:
    member = follower()
    member.raft.on_leader_lost(0)
    member.wait(50)
    member.respond(2, 3, granted=False)
    assert (member.raft.epoch, member.raft.fetch_source()) == (5, 3)
    assert not follower().raft.election.on_vote_request(vote(2, 5, 5, 4, pre_vote=True), 0).granted


def test_an_observer_that_lost_the_leader_fetches_from_any_node() -> None:
    member = Member((2, 3), epoch=5, leader_id=3)
    member.raft.on_leader_lost(0)
    assert member.raft.fetch_source() == ANY_NODE
    member.raft.on_fetch_response(NOT_LEADER, 3, 5, 0)
    assert member.raft.fetch_source() == 3
    member.wait(TIMEOUTS.fetch_ms)
    assert member.raft.fetch_source() == ANY_NODE


def test_the_leaders_high_watermark_is_limited_by_the_own_log_end() -> None:
    member = follower()
    for result, known in [(-1, 0), (2, 2), (9, 4), (3, 4)]:
        member.raft.on_leader_high_watermark(result)
        assert member.raft.high_watermark == known
    assert member.raft.leader_high_watermark == 9
    assert member.raft.take_effects() == [HighWatermark(2), HighWatermark(4)]


def test_a_node_without_a_leader_commits_nothing() -> None:
    member = Member(epoch=5, log=log_of(5))
    member.raft.on_leader_high_watermark(1)
    assert member.raft.high_watermark == 0


def test_a_follower_that_becomes_a_voter_requests_votes_after_the_fetch_timeout() -> None:
    member = Member((2, 3), epoch=5, leader_id=3)
    member.raft.on_voters_changed(Member().raft.voters, 7, 0)
    member.wait(TIMEOUTS.fetch_ms)
    assert isinstance(member.raft.role, Prospective)
