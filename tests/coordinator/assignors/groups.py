"""Groups for the laws of assignors: hypothesis strategies, and what to measure on them."""

from collections.abc import Iterable

from hypothesis import strategies as st

from barnabas.coordinator.groups.assignors.model import (
    Assignments,
    MemberSubscription,
    Subscribers,
    TopicShape,
)


def topic_id(number: int) -> bytes:
    return number.to_bytes(16, "big")


def shapes(*partition_counts: int) -> dict[bytes, TopicShape]:
    return {
        topic_id(number): TopicShape(topic_id(number), f"t{number}", count)
        for number, count in enumerate(partition_counts, 1)
    }


def member(name: str, topics: Iterable[int], **others: object) -> MemberSubscription:
    fields = {"instance_id": None, "assigned": {}} | others
    return MemberSubscription(member_id=name, topic_ids=frozenset(map(topic_id, topics)), **fields)


def group(topics: dict[bytes, TopicShape], *members: MemberSubscription) -> Subscribers:
    return Subscribers({each.member_id: each for each in members}, topics)


@st.composite
def homogeneous_groups(draw: st.DrawFn, max_members: int = 8) -> Subscribers:
    topics = shapes(*draw(st.lists(st.integers(1, 9), min_size=1, max_size=5)))
    numbers = range(1, len(topics) + 1)
    names = draw(_names(max_members))
    return group(topics, *(member(name, numbers) for name in names))


@st.composite
def mixed_groups(draw: st.DrawFn, max_members: int = 8) -> Subscribers:
    topics = shapes(*draw(st.lists(st.integers(1, 9), min_size=1, max_size=6)))
    numbers = st.sets(st.integers(1, len(topics)))
    names = draw(_names(max_members))
    return group(topics, *(member(name, draw(numbers)) for name in names))


@st.composite
def with_any_past(draw: st.DrawFn, groups: st.SearchStrategy[Subscribers]) -> Subscribers:
    """Members had any partitions: duplicates, unsubscribed topics, partitions that do not exist."""
    subscribers = draw(groups)
    past = st.dictionaries(
        st.integers(1, 8).map(topic_id), st.frozensets(st.integers(0, 11), min_size=1), max_size=4
    )
    return having(subscribers, {name: draw(past) for name in subscribers.members})


def having(subscribers: Subscribers, assignments: Assignments) -> Subscribers:
    """The same group after it got these assignments."""
    return Subscribers(
        {
            name: MemberSubscription(
                name, each.instance_id, each.topic_ids, assignments.get(name, {})
            )
            for name, each in subscribers.members.items()
        },
        subscribers.topics,
    )


def without(subscribers: Subscribers, name: str) -> Subscribers:
    others = {other: each for other, each in subscribers.members.items() if other != name}
    return Subscribers(others, subscribers.topics)


def sizes(assignments: Assignments) -> dict[str, int]:
    return {name: sum(map(len, owned.values())) for name, owned in assignments.items()}


def owners(assignments: Assignments) -> dict[tuple[bytes, int], list[str]]:
    owners: dict[tuple[bytes, int], list[str]] = {}
    for name, owned in assignments.items():
        for topic, partitions in owned.items():
            for partition in partitions:
                owners.setdefault((topic, partition), []).append(name)
    return owners


def check_whole(assignments: Assignments, subscribers: Subscribers) -> None:
    """All members are keys, and every partition is assigned to a subscriber of its topic."""
    assert assignments.keys() == subscribers.members.keys()
    requested = {each for one in subscribers.members.values() for each in one.topic_ids}
    everything = {
        (topic, partition)
        for topic in requested
        for partition in range(subscribers.topics[topic].partition_count)
    }
    assert owners(assignments).keys() == everything
    for (topic, _), [owner] in owners(assignments).items():
        assert topic in subscribers.members[owner].topic_ids


def moves(before: Assignments, after: Assignments) -> int:
    """How many partitions have another owner than before; new owners of free ones not counted."""
    old, new = owners(before), owners(after)
    return sum(new[partition] != old[partition] for partition in old if partition in new)


def _names(max_members: int) -> st.SearchStrategy[list[str]]:
    return st.lists(
        st.text("abcdef", min_size=1, max_size=3), min_size=1, max_size=max_members, unique=True
    )
