"""The laws of a quorum of one voter."""

from hypothesis import given
from hypothesis import strategies as st

from barnabas.raft.core_old import Leader, Raft, Unattached
from barnabas.raft.effects import QuorumState
from barnabas.raft.voters import Voter, Voters
from barnabas.wire.uuid import ZERO


def _voter(node_id: int) -> Voter:
    return Voter(node_id, ZERO, ())


def _raft(*voter_ids: int, epoch: int = 0, end_offset: int = 0) -> Raft:
    voters = Voters(map(_voter, voter_ids))
    return Raft(_voter(voter_ids[0]), voters, QuorumState(epoch), end_offset)


def test_the_vote_is_persisted_before_the_leadership_it_wins() -> None:
    vote, win = _raft(1, epoch=4).campaign()
    assert vote.persist is not None
    assert (vote.persist.epoch, vote.persist.voted_id, vote.persist.leader_id) == (5, 1, -1)
    assert vote.append is None
    assert win.persist is not None
    assert (win.persist.epoch, win.persist.leader_id) == (5, 1)
    assert win.append is not None
    assert win.append.granting == [1]


def test_a_minority_wins_nothing() -> None:
    raft = _raft(1, 2, 3)
    effects = raft.campaign()
    assert [each.append for each in effects] == [None]
    assert raft.leader_id == -1


def test_a_node_that_does_not_lead_commits_nothing() -> None:
    raft = _raft(1)
    assert isinstance(raft.role, Unattached)
    assert raft.durable(1, 100) == 0


def test_records_of_earlier_epochs_commit_with_the_first_of_the_new_one() -> None:
    raft = _raft(1, epoch=3, end_offset=10)
    raft.campaign()
    assert raft.durable(1, 10) == 0
    assert raft.durable(1, 11) == 11


@given(st.lists(st.integers(min_value=0, max_value=50), min_size=1))
def test_the_high_watermark_never_falls_and_never_passes_what_is_durable(ends: list[int]) -> None:
    raft = _raft(1)
    raft.campaign()
    assert isinstance(raft.role, Leader)
    before = 0
    for end in ends:
        after = raft.durable(1, end)
        assert before <= after <= max(ends)
        before = after


@given(st.lists(st.integers(min_value=0, max_value=9), min_size=1, max_size=7))
def test_a_majority_has_reached_the_majority_offset_and_none_has_passed_it_more(
    ends: list[int],
) -> None:
    voters = Voters(map(_voter, range(len(ends))))
    reached = voters.majority_offset(dict(enumerate(ends)))
    assert sum(end >= reached for end in ends) > len(ends) // 2
    assert sum(end > reached for end in ends) <= len(ends) // 2
