"""The laws of the uniform assignor: all is assigned once, evenly, and as little moves as can be."""

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.coordinator.assignors.groups import (
    check_whole,
    group,
    having,
    homogeneous_groups,
    member,
    mixed_groups,
    moves,
    shapes,
    sizes,
    topic_id,
    with_any_past,
    without,
)

from barnabas.coordinator.groups.assignors import ASSIGNORS
from barnabas.coordinator.groups.assignors.model import Assignments, Subscribers

assign = ASSIGNORS["uniform"]
any_group = homogeneous_groups() | mixed_groups()


@settings(deadline=None)
@given(any_group | with_any_past(any_group))
def test_every_partition_has_exactly_one_subscriber(subscribers: Subscribers) -> None:
    check_whole(assign(subscribers), subscribers)


@settings(deadline=None)
@given(any_group | with_any_past(any_group))
def test_a_topic_of_which_a_member_gets_nothing_is_not_named(subscribers: Subscribers) -> None:
    assert all(part for owned in assign(subscribers).values() for part in owned.values())


@settings(deadline=None)
@given(homogeneous_groups() | with_any_past(homogeneous_groups()))
def test_members_with_equal_subscriptions_get_equal_shares(subscribers: Subscribers) -> None:
    loads = sizes(assign(subscribers)).values()
    assert max(loads) - min(loads) <= 1


@settings(deadline=None)
@given(mixed_groups() | with_any_past(mixed_groups()))
def test_no_partition_could_move_to_make_its_subscribers_more_equal(
    subscribers: Subscribers,
) -> None:
    assignments = assign(subscribers)
    loads = sizes(assignments)
    for name, owned in assignments.items():
        for topic in owned:
            for other, each in subscribers.members.items():
                if topic in each.topic_ids:
                    assert loads[name] - loads[other] <= 1


@settings(deadline=None)
@given(any_group | with_any_past(any_group))
def test_partitions_just_assigned_are_assigned_again(subscribers: Subscribers) -> None:
    assignments = assign(subscribers)
    again = assign(having(subscribers, assignments))
    assert again == assignments
    assert all(again[name] is owned for name, owned in assignments.items())


@settings(deadline=None)
@given(any_group | with_any_past(any_group), st.randoms())
def test_the_order_members_are_listed_in_does_not_matter(
    subscribers: Subscribers, random: Random
) -> None:
    members, topics = list(subscribers.members.items()), list(subscribers.topics.items())
    random.shuffle(members)
    random.shuffle(topics)
    assert assign(Subscribers(dict(members), dict(topics))) == assign(subscribers)


@settings(deadline=None)
@given(homogeneous_groups(), st.data())
def test_when_a_member_leaves_no_other_member_loses_partitions(
    subscribers: Subscribers, data: st.DataObject
) -> None:
    before = assign(subscribers)
    leaver = data.draw(st.sampled_from(sorted(before)))
    if len(before) > 1:
        after = assign(having(without(subscribers, leaver), before))
        assert all(
            owned.get(topic, set()) >= part
            for name, owned in after.items()
            for topic, part in before[name].items()
        )


@settings(deadline=None)
@given(homogeneous_groups())
def test_when_a_member_joins_only_its_share_moves(subscribers: Subscribers) -> None:
    before = assign(subscribers)
    joiner = member("zz", range(1, len(subscribers.topics) + 1))
    grown = group(subscribers.topics, *having(subscribers, before).members.values(), joiner)
    after = assign(grown)
    assert moves(before, after) == sizes(after)["zz"]


@settings(deadline=None)
@given(with_any_past(homogeneous_groups()))
def test_only_partitions_above_the_quota_move(subscribers: Subscribers) -> None:
    """The fewest moves that balance allows: no more members could have kept a larger share."""
    kept = assign(having(subscribers, {}))  # only for the shares there are
    past = {name: each.assigned for name, each in subscribers.members.items()}
    past = _claims_that_stand(subscribers, past)
    shares = sorted(sizes(kept).values(), reverse=True)
    holdings = sorted(sizes(past).values(), reverse=True)
    needed = sum(max(held - share, 0) for held, share in zip(holdings, shares, strict=True))
    assert moves(past, assign(having(subscribers, past))) == needed


def test_a_first_assignment_is_consecutive_in_the_order_of_members() -> None:
    assignments = assign(group(shapes(3, 2), member("a", [1, 2]), member("b", [1, 2])))
    assert assignments == {
        "a": {topic_id(1): frozenset({0, 1, 2})},
        "b": {topic_id(2): frozenset({0, 1})},
    }


def test_topics_of_one_subscriber_are_balanced_with_shared_topics() -> None:
    subscribers = group(shapes(4, 4), member("a", [1, 2]), member("b", [2]))
    assert sizes(assign(subscribers)) == {"a": 4, "b": 4}


def test_no_members_get_no_partitions() -> None:
    assert assign(group(shapes(3))) == {}
    assert assign(group(shapes(3), member("a", []))) == {"a": {}}


def _claims_that_stand(subscribers: Subscribers, past: Assignments) -> Assignments:
    """Of two members with the same partition, the first keeps it; unknown ones are dropped."""
    seen: set[tuple[bytes, int]] = set()
    standing: Assignments = {}
    for name in sorted(past):
        standing[name] = {}
        for topic, partitions in past[name].items():
            if topic not in subscribers.members[name].topic_ids:
                continue
            count = subscribers.topics[topic].partition_count
            part = frozenset(p for p in partitions if p < count and (topic, p) not in seen)
            seen |= {(topic, partition) for partition in part}
            if part:
                standing[name][topic] = part
    return standing
