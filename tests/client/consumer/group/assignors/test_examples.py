"""Assignments that members of other makes would compute just so."""

from barnabas.client.consumer.group.assignors import (
    ASSIGNORS,
    ClusterTopics,
    GroupAssignment,
    SubscribedMember,
)
from barnabas.client.consumer.group.assignors.sticky import read_user_data

BOTH = frozenset({"a", "b"})


def test_range_assigns_longer_runs_to_the_first_members() -> None:
    members = [SubscribedMember("m2", BOTH), SubscribedMember("m1", BOTH)]
    assert compact("range", members, ClusterTopics({"a": 3, "b": 3})) == {
        "m1": "a0 a1 b0 b1",
        "m2": "a2 b2",
    }


def test_static_members_come_first_by_instance_id() -> None:
    members = [
        SubscribedMember("m1", BOTH),
        SubscribedMember("z", BOTH, instance_id="first"),
        SubscribedMember("y", BOTH, instance_id="second"),
    ]
    assert compact("range", members, ClusterTopics({"a": 4})) == {
        "z": "a0 a1",
        "y": "a2",
        "m1": "a3",
    }


def test_roundrobin_continues_across_topics_and_skips_members_without_one() -> None:
    members = [
        SubscribedMember("m1", frozenset({"a"})),
        SubscribedMember("m2", frozenset({"a", "b"})),
        SubscribedMember("m3", frozenset({"a", "b", "c"})),
    ]
    topics = ClusterTopics({"a": 1, "b": 2, "c": 3})
    assert compact("roundrobin", members, topics) == {
        "m1": "a0",
        "m2": "b0",
        "m3": "b1 c0 c1 c2",
    }


def test_range_prefers_members_in_the_rack_of_a_replica() -> None:
    members = [SubscribedMember(f"m{n}", BOTH, rack=rack) for n, rack in enumerate("xyz")]
    racks = {("a", 0): "z", ("a", 1): "y", ("a", 2): "x"}
    topics = ClusterTopics(
        {"a": 3}, {partition: frozenset(rack) for partition, rack in racks.items()}
    )
    assert compact("range", members, topics) == {"m0": "a2", "m1": "a1", "m2": "a0"}


def test_range_keeps_topics_co_partitioned() -> None:
    members = [SubscribedMember(f"m{n}", BOTH, rack=rack) for n, rack in enumerate("xy")]
    racks = {("a", 0): "y", ("b", 0): "y", ("a", 1): "x", ("b", 1): "x"}
    topics = ClusterTopics(
        {"a": 2, "b": 2}, {partition: frozenset(rack) for partition, rack in racks.items()}
    )
    assert compact("range", members, topics) == {"m0": "a1 b1", "m1": "a0 b0"}


def test_a_moving_partition_is_unassigned_until_its_owner_revoked_it() -> None:
    owner = SubscribedMember("m1", BOTH, owned=frozenset({("a", 0), ("a", 1)}), generation=3)
    newcomer = SubscribedMember("m2", BOTH)
    topics = ClusterTopics({"a": 2})
    assert compact("cooperative-sticky", [owner, newcomer], topics) == {"m1": "a0", "m2": ""}
    owner = SubscribedMember("m1", BOTH, owned=frozenset({("a", 0)}), generation=4)
    assert compact("cooperative-sticky", [owner, newcomer], topics) == {"m1": "a0", "m2": "a1"}


def test_sticky_user_data_has_javas_format() -> None:
    sticky = ASSIGNORS["sticky"]
    memory = sticky.user_data([("orders", 1), ("orders", 0)], 5)
    assert memory == bytes.fromhex("00000001 0006 6f7264657273 00000002 00000000 00000001 00000005")
    assert read_user_data(SubscribedMember("m", BOTH, user_data=memory)) == (
        [("orders", 0), ("orders", 1)],
        5,
    )
    without_generation = memory[:-4]
    assert read_user_data(SubscribedMember("m", BOTH, user_data=without_generation))[1] == -1
    assert sticky.user_data([], -1) is None


def test_five_hundred_members_are_assigned_in_time() -> None:
    """Were an assignor quadratic in them, this would take minutes."""
    names = [f"t{number}" for number in range(400)]
    topics = ClusterTopics(dict.fromkeys(names, 25))
    members = [
        SubscribedMember(f"m{number}", frozenset(names[number % 50 :: 3])) for number in range(500)
    ]
    for assignor in ASSIGNORS.values():
        assignment = assignor.assign(members, topics)
        assert sum(map(len, assignment.values())) == 10_000


def compact(name: str, members: list[SubscribedMember], topics: ClusterTopics) -> dict[str, str]:
    assignment: GroupAssignment = ASSIGNORS[name].assign(members, topics)
    return {
        member_id: " ".join(f"{topic}{index}" for topic, index in partitions)
        for member_id, partitions in assignment.items()
    }
