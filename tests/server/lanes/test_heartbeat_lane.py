"""The heartbeat lanes give the responses, timers and metrics of the handlers."""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st
from tests.replication.world import NODE_ID
from tests.server.acls import ClientAcls
from tests.server.lanes.group_brokers import (
    SLOW_SHARD,
    GroupBroker,
    LaneFactory,
    folder_of,
    frame_of,
)
from tests.server.lanes.group_members import Members
from tests.server.lanes.produce_brokers import FOLLOWER
from tests.uncompiled import load_uncompiled

from barnabas.coordinator.records import GROUPS_TOPIC
from barnabas.security.authorizer.model import AclOperation, group_resource, topic_resource
from barnabas.server.lanes import _heartbeat
from barnabas.server.quotas import RequestQuotas
from barnabas.wire.apis import ApiKey
from barnabas.wire.messages.classic_groups import HeartbeatRequest
from barnabas.wire.messages.consumer_groups import TopicPartitions
from barnabas.wire.messages.metadata_records import ConfigRecord

PLAIN = load_uncompiled(_heartbeat)
KINDS = {"compiled": _heartbeat, "plain": PLAIN}

Lanes = Mapping[ApiKey, LaneFactory]
NewBroker = Callable[[Lanes], GroupBroker]

CLASSIC, CONSUMER = "b", "h"
"""Groups of the shard that has no replicas."""

SLOW_CLASSIC, SLOW_CONSUMER = "a", "c"
"""Groups of the shard whose replica may lag."""

MEMBERS = 3
KEYS = (ApiKey.HEARTBEAT, ApiKey.CONSUMER_GROUP_HEARTBEAT)
GROUP_CONFIG = 32


@pytest.fixture
def new_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NewBroker]:
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    made: list[GroupBroker] = []
    root = tmp_path_factory.mktemp("brokers")

    def make(lanes: Lanes) -> GroupBroker:
        made.append(GroupBroker(folder_of(root, len(made)), loop, lanes, MEMBERS))
        return made[-1]

    yield make
    for broker in made:
        broker.close()
    asyncio.set_event_loop(None)
    loop.close()


@pytest.fixture(params=KINDS)
def lanes(request: pytest.FixtureRequest) -> Lanes:
    if request.param == "compiled" and not _heartbeat.COMPILED:
        pytest.skip("the modules are not compiled")
    module = KINDS[request.param]
    return {
        ApiKey.HEARTBEAT: module.HeartbeatLane,
        ApiKey.CONSUMER_GROUP_HEARTBEAT: module.ConsumerHeartbeatLane,
    }


@pytest.fixture
def members(new_broker: NewBroker, lanes: Lanes) -> Members:
    """The members of a broker with the lanes, and of one without."""
    return Members([new_broker(lanes), new_broker({})], MEMBERS)


def served_by_lane(members: Members, number: int, frame: bytes) -> bool:
    """Returns whether the lane serves a heartbeat. Both brokers give the same response."""
    handled = members.brokers[0].handled
    before = sum(handled[key] for key in KEYS)
    members.send(number, frame)
    return sum(handled[key] for key in KEYS) == before


# The plain shapes take the lane


@pytest.mark.parametrize("version", range(5))
def test_the_lane_serves_heartbeats_of_every_version(members: Members, version: int) -> None:
    members.stabilize_classic(CLASSIC)
    for number in range(MEMBERS):
        assert served_by_lane(members, number, frame_of(members.heartbeat(number), version))


@pytest.mark.parametrize("version", range(5))
def test_throttled_heartbeats_have_the_throttle_time_of_the_handler(
    members: Members, version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    members.stabilize_classic(CLASSIC)
    monkeypatch.setattr(RequestQuotas, "record", lambda *_, **__: 77)
    for broker in members.brokers:
        broker.world.broker.quotas.update({(("user", "alice"),): {"request_percentage": 1}})
    assert served_by_lane(members, 0, frame_of(members.heartbeat(0), version))


@pytest.mark.parametrize("version", range(2))
def test_the_lane_serves_consumer_heartbeats_of_every_version(
    members: Members, version: int
) -> None:
    members.stabilize_consumers(CONSUMER)
    for number in range(MEMBERS):
        frame = frame_of(members.consumer_heartbeat(number), version)
        assert served_by_lane(members, number, frame)


def test_the_lanes_serve_static_members(members: Members) -> None:
    members.stabilize_classic(CLASSIC, instance_ids=True)
    assert served_by_lane(members, 1, frame_of(members.heartbeat(1), 4))
    fenced = replace_fields(members.heartbeat(1), group_instance_id="i2")
    assert not served_by_lane(members, 1, frame_of(fenced, 4))
    members.stabilize_consumers(CONSUMER, instance_ids=True)
    assert served_by_lane(members, 1, frame_of(members.consumer_heartbeat(1), 1))
    fenced_consumer = replace_fields(members.consumer_heartbeat(1), instance_id="i2")
    assert not served_by_lane(members, 1, frame_of(fenced_consumer, 1))


def replace_fields(request: Any, **fields: Any) -> Any:
    for name, value in fields.items():
        setattr(request, name, value)
    return request


def test_clients_with_permission_take_the_lanes_and_others_do_not(members: Members) -> None:
    members.stabilize_classic(CLASSIC)
    heartbeat = frame_of(members.heartbeat(0), 4)
    acls = [ClientAcls(broker.world) for broker in members.brokers]
    assert not served_by_lane(members, 0, heartbeat)
    for each in acls:
        each.allow(AclOperation.READ, group_resource(CLASSIC))
    assert served_by_lane(members, 0, heartbeat)
    for each in acls:
        each.deny(AclOperation.READ, group_resource(CLASSIC))
    assert not served_by_lane(members, 0, heartbeat)


def test_heartbeats_of_another_client_id_are_the_handlers(members: Members) -> None:
    members.stabilize_consumers(CONSUMER)
    heartbeat = members.consumer_heartbeat(0)
    assert not served_by_lane(members, 0, frame_of(heartbeat, 1, "another"))
    assert served_by_lane(members, 0, frame_of(heartbeat, 1, "another"))


def test_a_lane_does_not_load_a_coordinator(members: Members) -> None:
    members.stabilize_classic(CLASSIC)
    lose_leadership(members, 0)
    lead_again(members, 0, has_replica=False)
    heartbeat = frame_of(members.heartbeat(0), 4)
    assert not served_by_lane(members, 0, heartbeat)
    assert served_by_lane(members, 0, heartbeat)


def test_a_heartbeat_waits_for_what_its_coordinator_has_written(members: Members) -> None:
    members.stabilize_classic(SLOW_CLASSIC)
    heartbeat = frame_of(members.heartbeat(0), 4)
    assert served_by_lane(members, 0, heartbeat)
    members.stabilize_consumers(SLOW_CONSUMER)
    consumer_heartbeat = frame_of(members.consumer_heartbeat(0), 1)
    assert served_by_lane(members, 0, consumer_heartbeat)
    members.act("commit", 1)
    assert not served_by_lane(members, 0, heartbeat)
    assert not served_by_lane(members, 0, consumer_heartbeat)
    members.replicate()
    assert served_by_lane(members, 0, heartbeat)
    assert served_by_lane(members, 0, consumer_heartbeat)


@pytest.mark.parametrize("heartbeats", [0, 9])
def test_a_member_is_removed_a_session_timeout_after_its_last_heartbeat(
    members: Members, heartbeats: int
) -> None:
    members.stabilize_classic(CLASSIC)
    for _ in range(heartbeats):
        for number in range(MEMBERS):
            assert served_by_lane(members, number, frame_of(members.heartbeat(number), 4))
        members.advance(3_000)
    members.advance(members.SESSION_MS - 3_000 - 1 if heartbeats else members.SESSION_MS - 1)
    for number in range(1, MEMBERS):
        assert served_by_lane(members, number, frame_of(members.heartbeat(number), 4))
    members.advance(1)
    assert not served_by_lane(members, 1, frame_of(members.heartbeat(1), 4))  # a rebalance
    members.check()


def test_the_lanes_keep_nothing_of_the_requests_that_they_serve(members: Members) -> None:
    members.stabilize_classic(CLASSIC)
    members.stabilize_consumers(CONSUMER)
    broker = members.brokers[0]
    for frame in (
        frame_of(members.heartbeat(0), 4),
        frame_of(members.consumer_heartbeat(0), 1),
        frame_of(replace_fields(members.heartbeat(0), generation_id=99), 4),
    ):
        content = bytearray(frame)
        broker.handle(0, content)
        content.append(0)  # raises BufferError while there is a view


# The same responses, timers and metrics


@dataclass(frozen=True)
class Beat:
    """A heartbeat of a member, perhaps of another generation or damaged."""

    number: int
    version: int
    fields: dict[str, Any]
    cut: int | None = None
    flip: tuple[int, int] | None = None
    client_id: str = "test"

    def frame(self, request: Any, max_version: int) -> bytes:
        version = min(self.version, max_version)
        for name, value in self.fields.items():
            if name in ("generation_id", "member_epoch"):
                value = getattr(request, name, 0) + value
            if hasattr(request, name) and (version or name != "subscribed_topic_regex"):
                setattr(request, name, value)
        if version < 3 and isinstance(request, HeartbeatRequest):
            request.group_instance_id = None
        frame = bytearray(frame_of(request, version, self.client_id))
        header_bytes = 11 + len(self.client_id)  # the header is the pipeline's
        if self.flip is not None:
            position, value = self.flip
            frame[header_bytes + position % (len(frame) - header_bytes)] ^= value
        return bytes(frame[: max(header_bytes, len(frame) - self.cut)] if self.cut else frame)


numbers = st.integers(0, MEMBERS - 1)
VALUES: dict[str, list[Any]] = {
    "group_id": [CLASSIC, CONSUMER, SLOW_CLASSIC, SLOW_CONSUMER, "", "?"],
    "generation_id": [-1, 1],
    "member_epoch": [-1, 1, -1, 1],
    "member_id": ["", " ", "unknown"],
    "group_instance_id": [None, "i0", "i1", "unknown"],
    "instance_id": [None, "i0", "i1", "", "unknown"],
    "rack_id": ["r1"],
    "rebalance_timeout_ms": [5_000],
    "subscribed_topic_names": [["orders"], ["payments"]],
    "subscribed_topic_regex": ["", "o.*"],
    "server_assignor": ["range", "none"],
    "topic_partitions": [[], [TopicPartitions(topic_id=bytes(16))]],
}
"""Values that fields of a heartbeat get. Generations and epochs are differences."""

one_change = st.sampled_from([(name, value) for name in VALUES for value in VALUES[name]])
changes_of_fields = st.lists(one_change, max_size=2).map(dict)
beats = st.builds(
    Beat,
    number=numbers,
    version=st.integers(0, 4),
    fields=changes_of_fields,
    cut=st.one_of(*[st.none()] * 8, st.integers(1, 40)),
    flip=st.one_of(*[st.none()] * 8, st.tuples(st.integers(0, 100), st.integers(1, 255))),
    client_id=st.sampled_from([*["test"] * 8, "another", ""]),
)
plain_beats = st.builds(Beat, number=numbers, version=st.integers(0, 4), fields=st.just({}))
steps_of_groups = st.one_of(
    *[plain_beats] * 5,
    *[beats] * 3,
    st.tuples(
        st.sampled_from(["stabilize", "stabilize consumers"]),
        st.sampled_from([CLASSIC, SLOW_CLASSIC]) | st.sampled_from([CONSUMER, SLOW_CONSUMER]),
        st.booleans(),
    ),
    st.tuples(st.sampled_from(["join", "leave", "consumer leave", "sync", "commit"]), numbers),
    st.tuples(
        st.just("advance"), st.sampled_from([1, 100, 2_999, 3_000, 6_000, 9_999, 10_000, 50_000])
    ),
    st.tuples(
        st.sampled_from(
            [
                "replicate",
                "lose leadership",
                "lead again",
                "more partitions",
                "other settings",
                "allow",
                "deny",
                "no authorizer",
                "disable consumers",
                "enable consumers",
            ]
        ),
        st.integers(0, 1),
    ),
)


def lose_leadership(members: Members, shard: int) -> None:
    for broker in members.brokers:
        broker.world.lead(GROUPS_TOPIC, shard, leader=FOLLOWER)


def lead_again(members: Members, shard: int, *, has_replica: bool) -> None:
    isr = (NODE_ID, FOLLOWER) if has_replica else (NODE_ID,)
    for broker in members.brokers:
        broker.world.lead(GROUPS_TOPIC, shard, isr=isr)


def happen(members: Members, change: str, value: Any) -> None:
    """Has something happen to both brokers."""
    match change:
        case "advance":
            members.advance(value)
        case "replicate":
            members.replicate()
        case "lose leadership":
            lose_leadership(members, value)
        case "lead again":
            lead_again(members, value, has_replica=value == SLOW_SHARD)
        case "join" | "leave" | "consumer leave" | "sync" | "commit":
            members.act(change, value)
        case _:
            for broker in members.brokers:
                change_broker(broker, change, value)


def change_broker(broker: GroupBroker, change: str, value: int) -> None:
    world = broker.world
    match change:
        case "more partitions":
            topic = world.image.topics.by_name("orders")
            assert topic is not None
            if len(topic.partitions) < 8:
                world.add_partition("orders")
        case "other settings":
            for group_id in (CLASSIC, CONSUMER):
                for name, setting in (
                    ("consumer.heartbeat.interval.ms", str(5_000 + value)),
                    ("consumer.session.timeout.ms", str(50_000 + value)),
                ):
                    world.metadata(
                        ConfigRecord(
                            resource_type=GROUP_CONFIG,
                            resource_name=group_id,
                            name=name,
                            value=setting,
                        )
                    )
        case "allow" | "deny":
            acls = ClientAcls(world)
            for group_id in (CLASSIC, CONSUMER, SLOW_CLASSIC):
                acls.allow(AclOperation.READ, group_resource(group_id))
            acls.allow(AclOperation.DESCRIBE, topic_resource("orders"))
            if change == "deny":
                denied = (CLASSIC, CONSUMER)[value]
                acls.deny(AclOperation.READ, group_resource(denied))
        case "no authorizer":
            world.broker.authorizer = None
        case "disable consumers" | "enable consumers":
            world.set_group_version(int(change == "enable consumers"))


@given(steps=st.lists(steps_of_groups, min_size=12, max_size=40))
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_lanes_and_handlers_give_the_same(
    new_broker: NewBroker, lanes: Lanes, steps: list[Any]
) -> None:
    members = Members([new_broker(lanes), new_broker({})], MEMBERS)
    members.stabilize_classic(CLASSIC)
    members.stabilize_consumers(CONSUMER)
    for step in steps:
        if isinstance(step, Beat):
            heartbeat: Any = members.heartbeat(step.number)
            members.send(step.number, step.frame(heartbeat, 4))
            consumer_heartbeat: Any = members.consumer_heartbeat(step.number)
            members.send(step.number, step.frame(consumer_heartbeat, 1))
        elif step[0] == "stabilize":
            members.stabilize_classic(step[1], instance_ids=step[2])
        elif step[0] == "stabilize consumers":
            members.stabilize_consumers(step[1], instance_ids=step[2])
        else:
            happen(members, *step)
    members.advance(60_000)
    members.check()
    with_lanes, without = members.brokers
    for key in KEYS:
        event(f"{key.name}: {with_lanes.handled[key]} of {without.handled[key]} were declined")
