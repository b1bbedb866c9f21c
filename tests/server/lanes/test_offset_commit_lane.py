"""The OffsetCommit lane gives the responses, offsets, timers and metrics of the handler."""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st
from tests.replication.world import id_of
from tests.server.acls import ClientAcls
from tests.server.lanes.group_brokers import GroupBroker, LaneFactory, folder_of, frame_of
from tests.server.lanes.group_members import Members
from tests.uncompiled import load_uncompiled

from barnabas.security.authorizer.model import AclOperation, group_resource, topic_resource
from barnabas.server.lanes import _offset_commit
from barnabas.server.quotas import RequestQuotas
from barnabas.wire.apis import ApiKey
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)

KINDS = {"compiled": _offset_commit, "plain": load_uncompiled(_offset_commit)}

Lanes = Mapping[ApiKey, LaneFactory]
NewBroker = Callable[[Lanes], GroupBroker]

CLASSIC, CONSUMER, WITHOUT_MEMBERS = "b", "h", "d"
"""Groups of the shard that has no replicas."""

REPLICATED = "a"
MEMBERS = 2
LAST_VERSION = 10


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
    if request.param == "compiled" and not _offset_commit.COMPILED:
        pytest.skip("the modules are not compiled")
    return {ApiKey.OFFSET_COMMIT: KINDS[request.param].OffsetCommitLane}


@pytest.fixture
def members(new_broker: NewBroker, lanes: Lanes) -> Members:
    """The members of a broker with the lane, and of one without."""
    return Members([new_broker(lanes), new_broker({})], MEMBERS)


def commit_of(
    *offsets: tuple[str, int, int],
    group_id: str = WITHOUT_MEMBERS,
    metadata: str | None = "",
    **fields: Any,
) -> OffsetCommitRequest:
    """Returns a commit of offsets: topic, partition and offset."""
    return OffsetCommitRequest(
        group_id=group_id,
        topics=[
            OffsetCommitRequestTopic(
                name=topic,
                topic_id=id_of(topic),
                partitions=[
                    OffsetCommitRequestPartition(
                        partition_index=index,
                        committed_offset=offset,
                        committed_leader_epoch=3,
                        committed_metadata=metadata,
                    )
                ],
            )
            for topic, index, offset in offsets
        ],
        **fields,
    )


def served_by_lane(members: Members, frame: bytes) -> bool:
    """Returns whether the lane serves a commit. Both brokers give the same response."""
    handled = members.brokers[0].handled
    before = handled[ApiKey.OFFSET_COMMIT]
    members.send(0, frame)
    return handled[ApiKey.OFFSET_COMMIT] == before


# The plain shapes take the lane


@pytest.mark.parametrize("metadata", ["", None])
@pytest.mark.parametrize("version", range(2, LAST_VERSION + 1))
def test_the_lane_serves_plain_commits_of_every_version(
    members: Members, version: int, metadata: str | None
) -> None:
    request = commit_of(("orders", 0, 7), ("payments", 1, 1 << 40), metadata=metadata)
    assert served_by_lane(members, frame_of(request, version))
    members.check()


@pytest.mark.parametrize("version", range(2, LAST_VERSION + 1))
def test_throttled_commits_have_the_throttle_time_of_the_handler(
    members: Members, version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RequestQuotas, "record", lambda *_, **__: 77)
    for broker in members.brokers:
        broker.world.broker.quotas.update({(("user", "alice"),): {"request_percentage": 1}})
    assert served_by_lane(members, frame_of(commit_of(("orders", 0, 7)), version))


def test_the_lane_serves_members_and_restarts_their_sessions(members: Members) -> None:
    members.stabilize_classic(CLASSIC)
    for _ in range(3):
        members.advance(members.SESSION_MS - 1)
        for number, member in enumerate(members.members):
            handled = members.brokers[0].handled[ApiKey.OFFSET_COMMIT]
            members.send(number, frame_of(members.commit(CLASSIC, member), 8))
            assert members.brokers[0].handled[ApiKey.OFFSET_COMMIT] == handled
    members.check()
    groups = members.brokers[0].world.broker.groups.runtime.shard(0).state.by_id
    assert groups[CLASSIC].state_name == "Stable"


@pytest.mark.parametrize(
    "request_",
    [
        commit_of(("orders", 0, 7), metadata="mine"),
        commit_of(("orders", 0, 7), retention_time_ms=1000),
        commit_of(("orders", 99, 7)),
        commit_of(("unknown", 0, 7)),
        commit_of(("orders", 0, 7), ("unknown", 0, 7)),
        commit_of(("orders", 0, 7), generation_id_or_member_epoch=1, member_id="unknown"),
        commit_of(("orders", 0, 7), group_id=REPLICATED),
        commit_of(),
        commit_of(*[("orders", 0, 7)] * 8193),
    ],
)
def test_the_lane_declines_other_commits(members: Members, request_: OffsetCommitRequest) -> None:
    assert not served_by_lane(members, frame_of(request_, 4))
    members.replicate()
    members.check()


def test_a_commit_that_cannot_be_written_is_an_error_of_every_partition(members: Members) -> None:
    request = commit_of(("orders", 0, 7), ("payments", 1, 8))
    assert served_by_lane(members, frame_of(request, 9))
    for broker in members.brokers:
        broker.world.configure("__consumer_offsets", max_message_bytes="100")
    for version in (2, 9, LAST_VERSION):
        handled = members.brokers[0].handled[ApiKey.OFFSET_COMMIT]
        (content, *_) = members.send(0, frame_of(request, version))
        assert members.brokers[0].handled[ApiKey.OFFSET_COMMIT] == handled
        start = 8 + (version >= 8)
        response = OffsetCommitResponse.reader(version)(memoryview(bytearray(content)), start)[0]
        codes = [
            partition.error_code for topic in response.topics for partition in topic.partitions
        ]
        assert codes == [ErrorCode.UNKNOWN_SERVER_ERROR] * 2
    members.check()


def test_clients_with_permission_take_the_lane_and_others_do_not(members: Members) -> None:
    frame = frame_of(commit_of(("orders", 0, 7)), 9)
    members.send(0, frame)
    acls = [ClientAcls(broker.world) for broker in members.brokers]
    for resource in (None, group_resource(WITHOUT_MEMBERS), topic_resource("orders")):
        for each in acls:
            if resource is not None:
                each.allow(AclOperation.READ, resource)
        assert served_by_lane(members, frame) == (resource == topic_resource("orders"))
    for each in acls:
        each.deny(AclOperation.READ, topic_resource("orders"))
    assert not served_by_lane(members, frame)
    members.check()


def test_the_lane_keeps_nothing_of_the_requests_that_it_serves(members: Members) -> None:
    broker = members.brokers[0]
    for _ in range(2):
        content = bytearray(frame_of(commit_of(("orders", 0, 7)), 9))
        broker.handle(0, content)
        content.append(0)  # raises BufferError while there is a view
    assert broker.handled[ApiKey.OFFSET_COMMIT] == 0


# The same responses, offsets, timers and metrics


@dataclass(frozen=True)
class Commit:
    """A commit of a member, or of a client that is none, perhaps damaged."""

    number: int
    version: int
    group_id: str
    as_member: bool
    offsets: list[tuple[str, int, int]]
    fields: dict[str, Any]
    cut: int | None = None
    flip: tuple[int, int] | None = None

    def frame(self, members: Members) -> bytes:
        member = members.members[self.number]
        fields = dict(self.fields)
        if self.as_member and self.group_id == CONSUMER:
            fields["member_id"] = member.consumer_id
            fields["generation_id_or_member_epoch"] = member.epoch
        elif self.as_member:
            fields["member_id"] = member.member_id
            fields["generation_id_or_member_epoch"] = member.generation
        fields["generation_id_or_member_epoch"] = fields.get(
            "generation_id_or_member_epoch", -1
        ) + fields.pop("epoch_difference", 0)
        if self.version < 7:
            fields.pop("group_instance_id", None)
        request = commit_of(*self.offsets, group_id=self.group_id, **fields)
        frame = bytearray(frame_of(request, self.version))
        if self.flip is not None:
            position, value = self.flip
            # The header is the pipeline's.
            frame[20 + position % (len(frame) - 20)] ^= value
        return bytes(frame[: max(20, len(frame) - self.cut)] if self.cut else frame)


def txn_commit_of(group_id: str, producer_id: int) -> TxnOffsetCommitRequest:
    partition = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=5)
    return TxnOffsetCommitRequest(
        transactional_id="tx",
        group_id=group_id,
        producer_id=producer_id,
        producer_epoch=0,
        topics=[TxnOffsetCommitRequestTopic(name="orders", partitions=[partition])],
    )


def commits_of(
    groups: st.SearchStrategy[tuple[str, bool]],
    topics: st.SearchStrategy[str],
    indexes: st.SearchStrategy[int],
    fields: st.SearchStrategy[dict[str, Any]],
    **options: st.SearchStrategy[Any],
) -> st.SearchStrategy[Commit]:
    offsets = st.tuples(topics, indexes, st.integers(-1, 1 << 62))
    return groups.flatmap(
        lambda group: st.builds(
            Commit,
            number=st.integers(0, MEMBERS - 1),
            version=st.integers(9 if group == (CONSUMER, True) else 2, LAST_VERSION),
            group_id=st.just(group[0]),
            as_member=st.just(group[1]),
            offsets=st.lists(offsets, min_size=1, max_size=4),
            fields=fields,
            **options,
        )
    )


plain_commits = commits_of(
    st.sampled_from([(CLASSIC, True), (CONSUMER, True), (WITHOUT_MEMBERS, False)]),
    st.sampled_from(["orders", "payments"]),
    st.integers(0, 1),
    st.just({}),
)
any_commits = commits_of(
    st.tuples(st.sampled_from([CLASSIC, CONSUMER, WITHOUT_MEMBERS, REPLICATED]), st.booleans()),
    st.sampled_from(["orders", "orders", "payments", "unknown", ""]),
    st.sampled_from([0, 1, 2, 3, 99, -1]),
    st.fixed_dictionaries(
        {},
        optional={
            "metadata": st.sampled_from(["", None, "mine", "m" * 5000]),
            "group_instance_id": st.sampled_from([None, "i0", "i1", ""]),
            "member_id": st.sampled_from(["", "unknown"]),
            "epoch_difference": st.sampled_from([-1, 1]),
            "retention_time_ms": st.sampled_from([-1, 0, 1000]),
        },
    ),
    cut=st.one_of(*[st.none()] * 4, st.integers(1, 60)),
    flip=st.one_of(*[st.none()] * 4, st.tuples(st.integers(0, 200), st.integers(1, 255))),
)
changes = st.sampled_from(
    [
        "stabilize",
        "stabilize static members",
        "stabilize consumers",
        "leave",
        "join",
        "replicate",
        "advance",
        "expire",
        "begin transaction",
        "lose leadership",
        "lead again",
        "small batches",
        "require two replicas",
        "require one replica",
    ]
)


def happen(members: Members, change: str) -> None:
    """Has something happen to both brokers."""
    worlds = [broker.world for broker in members.brokers]
    match change:
        case "stabilize":
            members.stabilize_classic(CLASSIC)
        case "stabilize static members":
            members.stabilize_classic(CLASSIC, instance_ids=True)
        case "stabilize consumers":
            members.stabilize_consumers(CONSUMER)
        case "leave" | "join":
            members.act(change, 0)
        case "replicate":
            members.replicate()
        case "advance" | "expire":
            members.advance(2_000 if change == "advance" else members.SESSION_MS)
        case "begin transaction":
            members.send(0, frame_of(txn_commit_of(WITHOUT_MEMBERS, 7), 3))
        case "lose leadership":
            for world in worlds:
                world.lead("__consumer_offsets", 0, leader=2)
        case "lead again":
            for world in worlds:
                world.lead("__consumer_offsets", 0, isr=(world.node_id,))
        case "small batches":
            for world in worlds:
                world.configure("__consumer_offsets", max_message_bytes="150")
        case "require two replicas" | "require one replica":
            count = "2" if change == "require two replicas" else "1"
            for world in worlds:
                world.configure("__consumer_offsets", min_insync_replicas=count)


@given(
    steps=st.lists(
        st.one_of(*[plain_commits] * 4, *[any_commits] * 2, changes), min_size=10, max_size=30
    )
)
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_lane_and_handler_give_the_same(
    new_broker: NewBroker, lanes: Lanes, steps: list[Commit | str]
) -> None:
    members = Members([new_broker(lanes), new_broker({})], MEMBERS)
    members.stabilize_classic(CLASSIC)
    members.stabilize_consumers(CONSUMER)
    for step in steps:
        if isinstance(step, Commit):
            members.send(step.number, step.frame(members))
        else:
            happen(members, step)
    members.check()
    members.advance(60_000)
    members.check()
    with_lane, without = members.brokers
    key = ApiKey.OFFSET_COMMIT
    event(f"{with_lane.handled[key]} of {without.handled[key]} requests were declined")
