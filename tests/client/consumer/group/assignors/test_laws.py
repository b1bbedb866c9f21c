"""What every assignor promises, for any members and any topics."""

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.client.consumer.group.assignors import (
    ASSIGNORS,
    ClusterTopics,
    GroupAssignment,
    SubscribedMember,
)
from barnabas.client.values import PartitionKey

NAMES = [f"t{number}" for number in range(6)]
LAST_GENERATION = 7
ROUNDS = 3
"""One for what has to move; more where members differ in what they subscribe to."""


@st.composite
def groups(draw: st.DrawFn, alike: bool = False) -> tuple[list[SubscribedMember], ClusterTopics]:
    """Members who own what they may have had, some of them in an earlier generation."""
    counts = draw(st.dictionaries(st.sampled_from(NAMES), st.integers(1, 12), min_size=1))
    some = st.frozensets(st.sampled_from(NAMES), min_size=1)
    common = draw(some)
    member_count = draw(st.integers(1, 9))
    everything = [(topic, index) for topic in NAMES for index in range(14)]
    members = []
    for number in range(member_count):
        topics = common if alike else draw(some)
        owned = draw(st.frozensets(st.sampled_from(everything), max_size=20))
        generation = draw(st.integers(LAST_GENERATION - 1, LAST_GENERATION))
        instance = draw(st.none() | st.just(f"i{number}"))
        members.append(SubscribedMember(f"m{number}", topics, instance, owned, generation))
    return members, ClusterTopics(counts)


@pytest.mark.parametrize("name", ASSIGNORS)
@given(group=groups())
def test_every_subscribed_partition_has_one_subscribed_owner(
    name: str, group: tuple[list[SubscribedMember], ClusterTopics]
) -> None:
    members, topics = group
    assignment = settled(name, members, topics)
    given_out = [each for partitions in assignment.values() for each in partitions]
    wanted = frozenset().union(*(member.topics for member in members))
    assert sorted(given_out) == sorted(p for topic in wanted for p in topics.of(topic))
    assert assignment.keys() == {member.member_id for member in members}
    for member in members:
        assert {topic for topic, _ in assignment[member.member_id]} <= member.topics


@pytest.mark.parametrize("name", ["sticky", "cooperative-sticky"])
@given(group=groups())
def test_no_partition_could_move_to_a_member_with_two_fewer(
    name: str, group: tuple[list[SubscribedMember], ClusterTopics]
) -> None:
    members, topics = group
    assignment = settled(name, members, topics)
    for giver, taker in product(members, members):
        held = assignment[giver.member_id]
        if any(topic in taker.topics for topic, _ in held):
            assert len(held) - len(assignment[taker.member_id]) <= 1


@given(group=groups(alike=True))
def test_sticky_moves_no_more_than_balance_needs(
    group: tuple[list[SubscribedMember], ClusterTopics],
) -> None:
    members, topics = group
    total = sum(topics.partitions.get(topic, 0) for topic in members[0].topics)
    fair, longer = divmod(total, len(members))
    owners = rightful_owners(members, topics)
    kept_at_least = sum(min(len(owners[m.member_id]), fair) for m in members) + min(
        longer, sum(len(owners[m.member_id]) > fair for m in members)
    )
    assignment = ASSIGNORS["sticky"].assign(members, topics)
    kept = sum(len(owners[m.member_id] & set(assignment[m.member_id])) for m in members)
    assert kept == kept_at_least


@pytest.mark.parametrize("name", ["sticky", "cooperative-sticky"])
@given(group=groups())
def test_nothing_moves_when_nothing_has_changed(
    name: str, group: tuple[list[SubscribedMember], ClusterTopics]
) -> None:
    members, topics = group
    first = settled(name, members, topics)
    again = ASSIGNORS[name].assign(owning(members, first, LAST_GENERATION + 1 + ROUNDS), topics)
    assert again == first


@given(group=groups())
def test_a_cooperative_assignment_has_no_partition_that_another_member_owns(
    group: tuple[list[SubscribedMember], ClusterTopics],
) -> None:
    members, topics = group
    assignment = ASSIGNORS["cooperative-sticky"].assign(members, topics)
    for member, other in product(members, members):
        if member is not other:
            new = set(assignment[member.member_id]) - member.owned
            assert not new & other.owned


@settings(max_examples=20)
@given(group=groups(), order=st.randoms(use_true_random=False))
def test_the_assignment_does_not_depend_on_the_order_of_members(
    group: tuple[list[SubscribedMember], ClusterTopics], order: object
) -> None:
    members, topics = group
    shuffled = list(members)
    order.shuffle(shuffled)  # type: ignore[attr-defined]
    for assignor in ASSIGNORS.values():
        assert assignor.assign(shuffled, topics) == assignor.assign(members, topics)


def settled(name: str, members: list[SubscribedMember], topics: ClusterTopics) -> GroupAssignment:
    """The assignment once those who had to give something up have done so and joined again."""
    assignor = ASSIGNORS[name]
    assignment = assignor.assign(members, topics)
    if assignor.is_cooperative:
        for generation in range(LAST_GENERATION + 1, LAST_GENERATION + 1 + ROUNDS):
            assignment = assignor.assign(owning(members, assignment, generation), topics)
    return assignment


def owning(
    members: list[SubscribedMember], owned: GroupAssignment, generation: int
) -> list[SubscribedMember]:
    return [
        SubscribedMember(
            m.member_id, m.topics, m.instance_id, frozenset(owned[m.member_id]), generation
        )
        for m in members
    ]


def rightful_owners(
    members: list[SubscribedMember], topics: ClusterTopics
) -> dict[str, set[PartitionKey]]:
    """Those who alone claim a partition in the latest generation in which it is claimed."""
    owners: dict[str, set[PartitionKey]] = {member.member_id: set() for member in members}
    for partition in {each for member in members for each in member.owned}:
        topic, index = partition
        claims = [
            m
            for m in members
            if partition in m.owned
            and topic in m.topics
            and index < topics.partitions.get(topic, 0)
        ]
        latest = [m for m in claims if m.generation == max(c.generation for c in claims)]
        if len(latest) == 1:
            owners[latest[0].member_id].add(partition)
    return owners
