"""Which votes are granted, and when elections start."""

from dataclasses import replace

import pytest
from tests.raft.stepped_node import ELECTION_MS, NONE, TIMEOUTS, Member, key, leader, log_of, vote

from barnabas.raft.messages import (
    AppendLeaderChange,
    BeginEpochRequest,
    EndEpochRequest,
    EpochResponse,
    Persist,
    QuorumState,
    RaftVoteRequest,
    RaftVoteResponse,
    SendEndEpoch,
)
from barnabas.raft.roles import (
    NO_NODE,
    Candidate,
    Follower,
    Leader,
    Prospective,
    Resigned,
    Unattached,
)
from barnabas.raft.voters import ReplicaKey, VoterNode, VoterSet
from barnabas.wire.errors import ErrorCode
from barnabas.wire.uuid import ZERO

FENCED = ErrorCode.FENCED_LEADER_EPOCH
INVALID = ErrorCode.INVALID_REQUEST


def persisted(member: Member) -> list[QuorumState]:
    effects = member.raft.take_effects()
    return [effect.state for effect in effects if isinstance(effect, Persist)]


# Vote requests of other nodes


@pytest.mark.parametrize(
    ("last_epoch", "last_offset", "granted"),
    [
        (2, 4, True),  # the same log
        (2, 5, True),  # a longer one
        (3, 1, True),  # a shorter one with a later epoch
        (2, 3, False),
        (1, 9, False),  # a longer one with an earlier epoch
    ],
)
@pytest.mark.parametrize("pre_vote", [True, False])
def test_a_vote_is_granted_to_logs_that_are_up_to_date(
    last_epoch: int, last_offset: int, granted: bool, pre_vote: bool
) -> None:
    member = Member(epoch=4, log=log_of(1, 1, 2, 2))
    result = member.raft.election.on_vote_request(
        vote(2, 5, last_epoch, last_offset, pre_vote=pre_vote), 0
    )
    assert result == RaftVoteResponse(NONE, NO_NODE, 5, granted)


@pytest.mark.parametrize(
    ("role", "pre_vote", "granted"),
    [
        ("unattached", True, True),
        ("unattached", False, True),
        ("voted for 2", True, True),
        ("voted for 2", False, True),
        ("voted for 3", True, True),
        ("voted for 3", False, False),
        ("prospective", True, True),
        ("prospective", False, True),
        ("candidate", True, True),
        ("candidate", False, False),
        ("follower, leader unheard", True, True),
        ("follower, leader unheard", False, False),
        ("follower", True, False),
        ("follower", False, False),
        ("follower, leader lost", True, True),
        ("follower, leader lost", False, False),
        ("leader", True, False),
        ("leader", False, False),
        ("resigned", True, True),
        ("resigned", False, False),
    ],
)
def test_which_roles_grant_a_vote_to_an_up_to_date_log(
    role: str, pre_vote: bool, granted: bool
) -> None:
    member = _in_role(role)
    epoch = member.raft.epoch
    last_epoch = epoch if pre_vote else epoch - 1
    result = member.raft.election.on_vote_request(
        vote(2, epoch, last_epoch, 99, pre_vote=pre_vote), member.now_ms
    )
    assert (result.error, result.granted) == (NONE, granted)


def _in_role(role: str) -> Member:
    match role.split(","):
        case ["unattached"]:
            return Member(epoch=1)
        case ["voted for 2"]:
            return Member(epoch=1, voted=2)
        case ["voted for 3"]:
            return Member(epoch=1, voted=3)
        case ["leader" | "resigned"]:
            member = leader()
            if role == "resigned":
                member.raft.leadership.resign(0)
            return member
        case ["follower", *state]:
            member = Member(epoch=1, leader_id=3)
            if state != [" leader unheard"]:
                member.raft.on_fetch_response(NONE, 3, 1, 0)
            if state == [" leader lost"]:
                member.raft.on_leader_lost(0)
            return member
    member = Member(epoch=1)
    member.wait_for_timer()
    if role == "candidate":
        member.respond(2)
    return member


def test_a_vote_is_on_disk_before_it_is_sent() -> None:
    member = Member(epoch=4)
    member.raft.election.on_vote_request(vote(2, 5), 0)
    assert persisted(member) == [
        QuorumState(5),
        QuorumState(5, voted_id=2, voted_directory_id=key(2).directory_id),
    ]


def test_a_pre_vote_changes_no_state() -> None:
    member = Member(epoch=4)
    assert member.raft.election.on_vote_request(vote(2, 4, pre_vote=True), 0).granted
    assert persisted(member) == []
    assert member.raft.election.on_vote_request(vote(3, 4), 0).granted


def test_a_vote_survives_a_restart() -> None:
    member = Member(epoch=5, voted=3)
    assert not member.raft.election.on_vote_request(vote(2, 5), 0).granted
    assert member.raft.election.on_vote_request(vote(3, 5), 0).granted


def test_a_node_that_voted_for_itself_requests_no_votes_in_that_epoch_after_a_restart() -> None:
    """Its log may be shorter now than it was when the others granted their votes."""
    member = Member(epoch=5, voted=1)
    assert isinstance(member.raft.role, Unattached)
    assert not member.raft.election.on_vote_request(vote(2, 5), 0).granted


def test_a_vote_for_a_node_with_another_directory_is_another_vote() -> None:
    member = Member(epoch=5, voted=2)
    other_disk = replace(vote(2, 5), candidate=ReplicaKey(2, key(9).directory_id))
    assert not member.raft.election.on_vote_request(other_disk, 0).granted
    assert member.raft.election.on_vote_request(vote(2, 5), 0).granted


def test_a_newer_epoch_is_adopted_even_if_the_vote_is_rejected() -> None:
    member = leader()
    result = member.raft.election.on_vote_request(vote(2, 7), 0)
    assert (result.epoch, result.granted, member.raft.epoch) == (7, False, 7)
    assert isinstance(member.raft.role, Unattached)


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (vote(2, 4), FENCED),
        (vote(2, 4, pre_vote=True), FENCED),
        (vote(2, 6, last_epoch=6), INVALID),  # a record of an epoch that has no leader yet
        (vote(2, 6, last_epoch=7, pre_vote=True), INVALID),
        (vote(2, 6, last_offset=-1), INVALID),
        (vote(2, 6, last_epoch=-1), INVALID),
        (replace(vote(2, 6), candidate=ReplicaKey(-1)), INVALID),
        (vote(2, 6, voter=key(9)), ErrorCode.INVALID_VOTER_KEY),
        (vote(2, 6, voter=ReplicaKey(1, key(9).directory_id)), ErrorCode.INVALID_VOTER_KEY),
        (vote(2, 6, voter=ReplicaKey(1)), NONE),
        (vote(2, 6, voter=key(1)), NONE),
        (vote(2, 6, last_epoch=6, pre_vote=True), NONE),
    ],
)
def test_invalid_vote_requests_are_rejected(request_: RaftVoteRequest, error: ErrorCode) -> None:
    result = Member(epoch=5).raft.election.on_vote_request(request_, 0)
    assert (result.error, result.granted) == (error, error is NONE)


# Standing


def test_a_sole_voter_leads_at_once() -> None:
    member = Member((1,), epoch=4)
    assert isinstance(member.raft.role, Leader)
    assert member.raft.epoch == 5
    assert member.raft.deadline_ms is None
    vote_kept, lead_kept, *_ = effects = [
        effect
        for effect in member.raft.take_effects()
        if isinstance(effect, Persist | AppendLeaderChange)
    ]
    assert isinstance(vote_kept, Persist)
    assert (vote_kept.state.epoch, vote_kept.state.voted_id) == (5, 1)
    assert lead_kept == Persist(QuorumState(5, leader_id=1))
    assert effects[2:] == [AppendLeaderChange(5, leader_id=1, voters=[1], granting_voters=[1])]


def test_an_election_goes_from_prospective_to_candidate_to_leader() -> None:
    member = Member(epoch=4, log=log_of(1, 4))
    member.wait_for_timer()
    assert isinstance(member.raft.role, Prospective)
    assert [(item.epoch, item.pre_vote) for item in member.vote_requests()] == [(4, True)] * 2
    assert [(item.last_epoch, item.last_offset) for item in member.vote_requests()] == [(4, 2)] * 2
    assert [item.voter for item in member.vote_requests()] == [key(2), key(3)]
    assert persisted(member) == []
    member.respond(3)
    assert isinstance(member.raft.role, Candidate)
    assert [(item.epoch, item.pre_vote) for item in member.vote_requests()] == [(5, False)] * 2
    member.respond(2)
    assert isinstance(member.raft.role, Leader)
    assert [state.leader_id for state in persisted(member)] == [NO_NODE, 1]


def test_a_follower_whose_pre_vote_is_rejected_stays_in_its_epoch() -> None:
    member = Member(epoch=4, leader_id=3)
    member.wait_for_timer()
    assert isinstance(member.raft.role, Prospective)
    member.respond(2, 3, granted=False)
    assert (member.raft.role.epoch, member.raft.fetch_source()) == (4, 3)
    assert persisted(member) == []


def test_a_response_of_the_leader_itself_ends_the_pre_vote() -> None:
    member = Member(epoch=4, leader_id=3)
    member.wait_for_timer()
    member.raft.election.on_vote_response(3, RaftVoteResponse(NONE, 3, 4, False), member.now_ms)
    assert member.raft.fetch_source() == 3


def test_a_resigned_leader_may_start_an_election() -> None:
    member = Member(epoch=4, leader_id=3)
    member.wait_for_timer()
    member.raft.election.on_vote_response(3, RaftVoteResponse(NONE, 3, 4, True), member.now_ms)
    assert isinstance(member.raft.role, Candidate)


def test_a_candidate_that_lost_becomes_prospective_again() -> None:
    member = Member(epoch=4)
    member.wait_for_timer()
    member.respond(2)
    member.respond(2, 3, granted=False)
    assert member.vote_requests() == []
    member.wait(TIMEOUTS.backoff_max_ms)
    assert isinstance(member.raft.role, Prospective)
    assert member.raft.epoch == 5


def test_vote_responses_of_another_epoch_are_ignored() -> None:
    member = Member(epoch=4)
    member.wait_for_timer()
    member.respond(2)
    member.raft.election.on_vote_response(
        3, RaftVoteResponse(NONE, NO_NODE, 4, True), member.now_ms
    )
    assert isinstance(member.raft.role, Candidate)


def test_a_voter_without_pre_vote_gets_a_vote_request() -> None:
    member = Member(epoch=4)
    member.wait_for_timer()
    result = RaftVoteResponse(ErrorCode.UNSUPPORTED_VERSION, NO_NODE, -1, False)
    member.raft.election.on_vote_response(2, result, member.now_ms)
    assert isinstance(member.raft.role, Candidate)
    assert member.raft.epoch == 5


def test_a_granted_vote_restarts_the_election_timer() -> None:
    member = Member(epoch=4)
    member.wait(TIMEOUTS.election_ms - 1)
    member.raft.election.on_vote_request(vote(2, 5), member.now_ms)
    assert member.raft.deadline_ms is not None
    assert member.raft.deadline_ms >= member.now_ms + TIMEOUTS.election_ms


def test_a_rejected_vote_does_not_restart_the_election_timer() -> None:
    member = Member(epoch=4, log=log_of(4))
    before = member.raft.deadline_ms
    member.raft.election.on_vote_request(vote(2, 5), member.now_ms)
    assert member.raft.deadline_ms == before


def test_an_observer_starts_no_election_but_grants_votes() -> None:
    """It may be a voter already, by a record that it has not fetched yet."""
    member = Member((2, 3), epoch=4)
    member.wait(10 * ELECTION_MS)
    assert isinstance(member.raft.role, Unattached)
    assert member.raft.election.on_vote_request(vote(2, 5, voter=key(1)), 0).granted
    member.wait(10 * ELECTION_MS)
    assert isinstance(member.raft.role, Unattached)


def test_a_node_with_another_directory_than_the_voter_is_an_observer() -> None:
    other_disk = VoterSet(
        [VoterNode(1, key(9).directory_id, ()), VoterNode(2, key(2).directory_id, ())]
    )
    assert not Member(other_disk).raft.is_voter


def test_a_voter_without_known_directory_votes_from_any_directory() -> None:
    static = VoterSet(VoterNode(item, ZERO, ()) for item in (1, 2, 3))
    assert Member(static).raft.is_voter


# Beginnings and ends of epochs


@pytest.mark.parametrize(
    ("begun", "error"),
    [
        (BeginEpochRequest(2, 4), FENCED),
        (BeginEpochRequest(-1, 5), INVALID),
        (BeginEpochRequest(2, 5), NONE),
        (BeginEpochRequest(2, 6, key(1)), NONE),
        (BeginEpochRequest(2, 6, key(9)), ErrorCode.INVALID_VOTER_KEY),
    ],
)
def test_responses_to_begin_quorum_epoch(begun: BeginEpochRequest, error: ErrorCode) -> None:
    member = Member(epoch=5)
    assert member.raft.election.on_begin_epoch_request(begun, 0) is error
    # Who leads is true even where the request was for another.
    follows = error in (NONE, ErrorCode.INVALID_VOTER_KEY)
    assert isinstance(member.raft.role, Follower) == follows


def test_leader_and_vote_of_an_epoch_are_both_persisted() -> None:
    member = Member(epoch=5, voted=3)
    member.raft.election.on_begin_epoch_request(BeginEpochRequest(2, 5), 0)
    assert persisted(member) == [QuorumState(5, 2, 3, key(3).directory_id)]


def test_a_candidate_follows_the_winner_of_its_epoch() -> None:
    member = Member(epoch=4)
    member.wait_for_timer()
    member.respond(2)
    member.raft.election.on_begin_epoch_request(BeginEpochRequest(3, 5), member.now_ms)
    assert (member.raft.role.epoch, member.raft.leader_id) == (5, 3)


@pytest.mark.parametrize(
    ("candidates", "pause_ms"),
    [
        ((1, 2, 3), 0),
        ((2, 1, 3), 250),
        ((2, 3, 1), 500),
        ((2, 3), 1000),
        ((), 1000),
    ],
)
def test_preferred_successors_start_elections_in_order(
    candidates: tuple[int, ...], pause_ms: int
) -> None:
    member = Member(epoch=5, leader_id=4)
    ended = EndEpochRequest(4, 5, tuple(map(key, candidates)))
    assert member.raft.election.on_end_epoch_request(ended, 100) is NONE
    assert member.raft.deadline_ms == 100 + pause_ms


def test_end_quorum_epoch_of_an_older_epoch_is_rejected() -> None:
    member = Member(epoch=5, leader_id=3)
    assert member.raft.election.on_end_epoch_request(EndEpochRequest(3, 4, ()), 0) is FENCED


def test_a_resigned_leader_lists_the_most_advanced_voter_first_until_all_acknowledged() -> None:
    member = leader((1, 2, 3, 4, 5))
    member.append(4)
    for node_id, offset in [(2, 1), (3, 5), (5, 4)]:
        member.fetch(node_id, offset)
    member.raft.leadership.resign(0)
    sent = member.raft.pending_requests()
    assert all(isinstance(item, SendEndEpoch) for item in sent)
    assert [item.voter.node_id for item in sent] == [2, 3, 4, 5]
    assert sent[0].request == EndEpochRequest(1, 1, (key(3), key(5), key(2), key(4)))
    member.raft.election.on_end_epoch_response(3, EpochResponse(NONE, 1, 1), 0)
    assert [item.voter.node_id for item in member.raft.pending_requests()] == [2, 4, 5]


def test_a_leader_that_restarts_never_leads_its_epoch_again() -> None:
    member = Member(epoch=5, leader_id=1)
    assert isinstance(member.raft.role, Resigned)
    member.wait_for_timer()
    assert member.raft.epoch == 6
    assert member.raft.leader_id == NO_NODE


def test_an_epoch_in_the_log_beyond_the_quorum_state_is_adopted() -> None:
    member = Member(epoch=3, leader_id=2, log=log_of(1, 4))
    assert member.raft.role == Unattached(4, election_at_ms=member.raft.deadline_ms)
    assert persisted(member) == [QuorumState(4)]
