"""The laws of the range assignor: neighbours stay together, and equal topics are cut alike."""

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.coordinator.assignors.groups import (
    check_whole,
    group,
    homogeneous_groups,
    member,
    mixed_groups,
    shapes,
    topic_id,
    with_any_past,
)

from barnabas.coordinator.groups.assignors import ASSIGNORS
from barnabas.coordinator.groups.assignors.model import Subscribers

assign = ASSIGNORS["range"]
any_group = homogeneous_groups() | mixed_groups()


@settings(deadline=None)
@given(any_group)
def test_every_partition_has_exactly_one_subscriber(subscribers: Subscribers) -> None:
    check_whole(assign(subscribers), subscribers)


@settings(deadline=None)
@given(any_group)
def test_subscribers_of_a_topic_get_ranges_of_equal_length(subscribers: Subscribers) -> None:
    assignments = assign(subscribers)
    for topic in subscribers.topics:
        runs = [
            sorted(assignments[name].get(topic, ()))
            for name, each in subscribers.members.items()
            if topic in each.topic_ids
        ]
        assert all(run == list(range(run[0], run[-1] + 1)) for run in runs if run)
        lengths = [len(run) for run in runs] or [0]
        assert max(lengths) - min(lengths) <= 1


@settings(deadline=None)
@given(homogeneous_groups())
def test_topics_of_one_size_are_assigned_alike(subscribers: Subscribers) -> None:
    for owned in assign(subscribers).values():
        by_size: dict[int, set[frozenset[int]]] = {}
        for topic, shape in subscribers.topics.items():
            cut = by_size.setdefault(shape.partition_count, set())
            cut.add(owned.get(topic, frozenset()))
        assert all(len(cuts) == 1 for cuts in by_size.values())


@settings(deadline=None)
@given(with_any_past(any_group), st.randoms())
def test_the_range_assignor_ignores_the_current_assignment_and_the_order(
    subscribers: Subscribers, random: Random
) -> None:
    members = list(subscribers.members.items())
    random.shuffle(members)
    forgetful = {
        name: member(name, (int.from_bytes(topic, "big") for topic in each.topic_ids))
        for name, each in members
    }
    assert assign(Subscribers(forgetful, subscribers.topics)) == assign(subscribers)


def test_static_members_come_first_in_the_order_of_their_instance_ids() -> None:
    subscribers = group(
        shapes(4),
        member("a", [1]),
        member("b", [1], instance_id="y"),
        member("c", [1], instance_id="x"),
        member("d", [1]),
    )
    assert {name: owned[topic_id(1)] for name, owned in assign(subscribers).items()} == {
        "c": frozenset({0}),
        "b": frozenset({1}),
        "a": frozenset({2}),
        "d": frozenset({3}),
    }


def test_a_static_member_that_restarts_gets_its_range_again() -> None:
    def ranges(**ids: str) -> dict[str, object]:
        members = [member(ids[name], [1, 2], instance_id=name) for name in ids]
        assignments = assign(group(shapes(5, 5), *members))
        return {name: assignments[member_id] for name, member_id in ids.items()}

    assert ranges(x="m1", y="m2") == ranges(x="m9", y="m2")


def test_a_topics_only_subscriber_gets_all_of_it() -> None:
    assignments = assign(group(shapes(4, 3), member("a", [1, 2]), member("b", [1])))
    assert assignments == {
        "a": {topic_id(1): frozenset({0, 1}), topic_id(2): frozenset({0, 1, 2})},
        "b": {topic_id(1): frozenset({2, 3})},
    }


def test_no_members_get_no_partitions() -> None:
    assert assign(group(shapes(3))) == {}
    assert assign(group(shapes(3), member("a", []))) == {"a": {}}
