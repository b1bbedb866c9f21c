"""Who votes, and what makes a majority."""

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st
from tests.raft.stepped_node import key, voters_of

from barnabas.raft.voters import ReplicaKey, VoterNode, VoterSet
from barnabas.wire.uuid import ZERO


def test_a_voter_is_a_node_with_one_directory() -> None:
    voters = voters_of(1, 2)
    assert voters.includes(key(1))
    assert not voters.includes(ReplicaKey(1, key(2).directory_id))
    assert not voters.includes(ReplicaKey(1))
    assert not voters.includes(key(3))


def test_a_voter_without_known_directory_matches_any_directory() -> None:
    voters = VoterSet([VoterNode(1, ZERO, ())])
    assert voters.includes(key(1))
    assert voters.includes(ReplicaKey(1))


@given(st.integers(1, 6), st.integers(1, 6))
def test_majorities_before_and_after_a_voter_change_intersect(size: int, changed: int) -> None:
    before = voters_of(*range(1, size + 1))
    after = before.without(changed) if before.get(changed) else before.with_voter(_voter(changed))
    for some in _majorities(before):
        assert all(some & others for others in _majorities(after))


def _voter(node_id: int) -> VoterNode:
    return VoterNode(node_id, key(node_id).directory_id, ())


def _majorities(voters: VoterSet) -> list[set[int]]:
    ids = voters.ids()
    groups = (set(item) for size in range(len(ids) + 1) for item in combinations(ids, size))
    return [item for item in groups if voters.is_majority(item)]


@given(st.lists(st.integers(min_value=0, max_value=9), min_size=1, max_size=7))
def test_the_majority_offset_is_the_largest_that_a_majority_has_reached(
    ends: list[int],
) -> None:
    voters = voters_of(*range(len(ends)))
    reached = voters.majority_offset(dict(enumerate(ends)))
    assert sum(end >= reached for end in ends) > len(ends) // 2
    assert sum(end > reached for end in ends) <= len(ends) // 2
