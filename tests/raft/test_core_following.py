"""How a node follows, and notices that there is nobody to follow."""

from tests.raft.members import NONE, TIMEOUTS, Member, log_of, vote

from barnabas.raft.effects import HighWatermark
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


def test_who_knows_no_leader_asks_anyone() -> None:
    assert Member(epoch=5).raft.fetch_source() == ANY_NODE
    assert follower().raft.fetch_source() == 3


def test_the_answer_that_names_the_leader_brings_its_first_records() -> None:
    member = Member(epoch=4)
    assert member.raft.on_fetch_response(NONE, 3, 5, 0)
    assert isinstance(member.raft.role, Follower)


def test_only_the_leaders_good_answer_of_this_epoch_may_change_the_log() -> None:
    for error, leader_id, epoch in [
        (NONE, 3, 4),
        (NONE, 2, 5),
        (ErrorCode.FENCED_LEADER_EPOCH, 3, 5),
        (NOT_LEADER, 3, 5),
        (NONE, NO_NODE, 6),
    ]:
        assert not follower().raft.on_fetch_response(error, leader_id, epoch, 0)


def test_a_newer_epoch_in_an_answer_is_taken() -> None:
    member = follower()
    member.raft.on_fetch_response(NOT_LEADER, NO_NODE, 6, 0)
    assert isinstance(member.raft.role, Unattached)
    member.raft.on_fetch_response(NOT_LEADER, 2, 7, 0)
    assert (member.raft.epoch, member.raft.fetch_source()) == (7, 2)


def test_a_leader_that_answers_stays_the_leader() -> None:
    member = follower()
    for _ in range(10):
        member.wait(TIMEOUTS.fetch_ms - 1)
        assert member.raft.on_fetch_response(NONE, 3, 5, member.now_ms)
    member.wait(TIMEOUTS.fetch_ms)
    assert isinstance(member.raft.role, Prospective)


def test_an_error_does_not_keep_the_leader_alive() -> None:
    member = follower()
    member.wait(TIMEOUTS.fetch_ms - 1)
    member.raft.on_fetch_response(ErrorCode.BROKER_NOT_AVAILABLE, 3, 5, member.now_ms)
    member.wait(1)
    assert isinstance(member.raft.role, Prospective)


def test_who_loses_its_connection_to_the_leader_stands_at_once() -> None:
    member = follower()
    member.raft.on_leader_lost(0)
    assert member.raft.fetch_source() is None
    member.wait(50)
    assert isinstance(member.raft.role, Prospective)


def test_a_connection_that_breaks_again_and_again_does_not_put_the_election_off() -> None:
    member = follower()
    for _ in range(10):
        member.raft.on_leader_lost(member.now_ms)
        member.wait(5)
    assert isinstance(member.raft.role, Prospective)


def test_one_who_lost_the_leader_is_called_back_by_those_who_have_not() -> None:
    member = follower()
    member.raft.on_leader_lost(0)
    member.wait(50)
    member.answer(2, 3, granted=False)
    assert (member.raft.epoch, member.raft.fetch_source()) == (5, 3)
    assert not follower().raft.election.on_vote_request(vote(2, 5, 5, 4, pre_vote=True), 0).granted


def test_an_observer_that_lost_the_leader_asks_anyone_until_it_hears_of_it() -> None:
    member = Member((2, 3), epoch=5, leader_id=3)
    member.raft.on_leader_lost(0)
    assert member.raft.fetch_source() == ANY_NODE
    member.raft.on_fetch_response(NOT_LEADER, 3, 5, 0)
    assert member.raft.fetch_source() == 3
    member.wait(TIMEOUTS.fetch_ms)
    assert member.raft.fetch_source() == ANY_NODE


def test_the_leaders_high_watermark_counts_as_far_as_the_own_log_goes() -> None:
    member = follower()
    for told, known in [(-1, 0), (2, 2), (9, 4), (3, 4)]:
        member.raft.on_leader_high_watermark(told)
        assert member.raft.high_watermark == known
    assert member.raft.take_effects() == [HighWatermark(2), HighWatermark(4)]


def test_a_node_that_follows_nobody_commits_nothing() -> None:
    member = Member(epoch=5, log=log_of(5))
    member.raft.on_leader_high_watermark(1)
    assert member.raft.high_watermark == 0


def test_a_follower_that_becomes_a_voter_stands_when_the_leader_is_silent() -> None:
    member = Member((2, 3), epoch=5, leader_id=3)
    member.raft.on_voters_changed(Member().raft.voters, 7, 0)
    member.wait(TIMEOUTS.fetch_ms)
    assert isinstance(member.raft.role, Prospective)
