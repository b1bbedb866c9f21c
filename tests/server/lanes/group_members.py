"""Members that join groups of several equal brokers at once, and get the same responses."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tests.server.lanes.group_brokers import GroupBroker, frame_of

from barnabas.wire.apis import api
from barnabas.wire.errors import ErrorCode
from barnabas.wire.headers import response_header_version
from barnabas.wire.messages.classic_groups import (
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
    LeaveGroupRequest,
    MemberIdentity,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)
from barnabas.wire.messages.consumer_groups import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from barnabas.wire.messages.consumer_protocol import ConsumerProtocolSubscription
from barnabas.wire.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)

JOIN_VERSION = 9
SYNC_VERSION = 5
LEAVE_VERSION = 5
COMMIT_VERSION = 8
CONSUMER_VERSION = 1
LENGTH_BYTES = 4
CORRELATION_BYTES = 4
MAX_ROUNDS = 8


@dataclass
class Member:
    """What a client knows as a member of a classic group, and as one of a consumer group."""

    group_id: str = ""
    member_id: str = ""
    instance_id: str | None = None
    generation: int = 0
    consumer_group_id: str = ""
    consumer_id: str = ""
    consumer_instance_id: str | None = None
    epoch: int = 0


class Members:
    """Clients, by the number of their connection. Each is a member of two groups at most."""

    SESSION_MS = 10_000

    def __init__(self, brokers: Sequence[GroupBroker], count: int) -> None:
        self.brokers = brokers
        self.members = [Member(consumer_id=f"consumer-{number}") for number in range(count)]

    # Requests

    def heartbeat(self, number: int) -> HeartbeatRequest:
        member = self.members[number]
        return HeartbeatRequest(
            group_id=member.group_id,
            generation_id=member.generation,
            member_id=member.member_id,
            group_instance_id=member.instance_id,
        )

    def consumer_heartbeat(self, number: int, **fields: Any) -> ConsumerGroupHeartbeatRequest:
        member = self.members[number]
        return ConsumerGroupHeartbeatRequest(
            group_id=member.consumer_group_id,
            member_id=member.consumer_id,
            member_epoch=member.epoch,
            instance_id=member.consumer_instance_id,
            **fields,
        )

    def commit(self, group_id: str, member: Member | None = None) -> OffsetCommitRequest:
        partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
        return OffsetCommitRequest(
            group_id=group_id,
            generation_id_or_member_epoch=member.generation if member else -1,
            member_id=member.member_id if member else "",
            topics=[OffsetCommitRequestTopic(name="orders", partitions=[partition])],
        )

    # What happens to all brokers

    def send(self, number: int, frame: bytes) -> list[bytes]:
        """Sends a frame to each broker; returns what each client gets, which must be the same."""
        noticed = [broker.send(number, frame) for broker in self.brokers]
        return self._same(noticed)

    def advance(self, delay_ms: int) -> list[bytes]:
        """Lets time pass; returns what each client gets meanwhile."""
        for broker in self.brokers:
            broker.world.advance(delay_ms)
        return self._same([broker.notice() for broker in self.brokers])

    def replicate(self) -> list[bytes]:
        """Commits everything; returns what each client gets then."""
        for broker in self.brokers:
            broker.world.replicate()
        return self._same([broker.notice() for broker in self.brokers])

    def check(self) -> None:
        """Compares what the requests have changed."""
        first, *others = [broker.state() for broker in self.brokers]
        for other in others:
            assert first == other

    # Members

    def stabilize_classic(self, group_id: str, *, instance_ids: bool = False) -> None:
        """Has all clients join a classic group, as far as they can."""
        for number, member in enumerate(self.members):
            if member.group_id != group_id:
                member.member_id, member.group_id, member.generation = "", group_id, 0
            member.instance_id = f"i{number}" if instance_ids else None
            self._request_member_id(number)
        joined = self._join_all()
        leader = next((n for n, each in joined.items() if each.members), None)
        for number in sorted(joined, key=lambda number: number == leader):
            self._sync(number, joined[number])
        self.replicate()

    def stabilize_consumers(self, group_id: str, *, instance_ids: bool = False) -> None:
        """Has all clients join a consumer group, and take their partitions."""
        for number, member in enumerate(self.members):
            member.consumer_group_id, member.epoch = group_id, 0
            member.consumer_instance_id = f"i{number}" if instance_ids else None
            self._beat(
                number,
                rebalance_timeout_ms=10_000,
                subscribed_topic_names=["orders"],
                topic_partitions=[],
            )
        self.advance(2_000)  # the interval between assignments
        reported: dict[int, list[TopicPartitions]] = {n: [] for n in range(len(self.members))}
        for _ in range(MAX_ROUNDS):
            for number in reported:
                response = self._beat(number, topic_partitions=reported[number])
                if response is not None and response.assignment is not None:
                    reported[number] = response.assignment.topic_partitions

    def act(self, action: str, number: int) -> None:
        """Has one client do one thing."""
        member = self.members[number]
        match action:
            case "join":
                self._exchange(number, self._join(number), JOIN_VERSION)
            case "sync":
                self._exchange(number, self._sync_request(number, None), SYNC_VERSION)
            case "leave":
                identity = MemberIdentity(member_id=member.member_id)
                request = LeaveGroupRequest(group_id=member.group_id, members=[identity])
                self._exchange(number, request, LEAVE_VERSION)
            case "consumer leave":
                epoch = -1 if member.consumer_instance_id is None else -2
                request = self.consumer_heartbeat(number)
                request.member_epoch = epoch
                self._exchange(number, request, CONSUMER_VERSION)
            case "commit":
                self._exchange(number, self.commit(member.group_id, member), COMMIT_VERSION)

    def _request_member_id(self, number: int) -> None:
        """A new member gets its id first (KIP-394)."""
        member = self.members[number]
        if member.member_id or member.instance_id is not None:
            return
        response = self._exchange_and_replicate(number, self._join(number), JOIN_VERSION)
        if response is not None and response.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            member.member_id = response.member_id

    def _join_all(self) -> dict[int, JoinGroupResponse]:
        joined: dict[int, JoinGroupResponse] = {}
        frames = [frame_of(self._join(n), JOIN_VERSION) for n in range(len(self.members))]
        received = [self.send(number, frame) for number, frame in enumerate(frames)]
        received.append(self.advance(0))  # the wait for more members is over
        for contents in received:
            for number, content in enumerate(contents):
                response = _last_response(JoinGroupRequest, JOIN_VERSION, content)
                if response is not None and response.error_code == ErrorCode.NONE:
                    joined[number] = response
                    self.members[number].member_id = response.member_id
                    self.members[number].generation = response.generation_id
        return joined

    def _join(self, number: int) -> JoinGroupRequest:
        member = self.members[number]
        subscription = ConsumerProtocolSubscription(topics=["orders"])
        return JoinGroupRequest(
            group_id=member.group_id,
            session_timeout_ms=self.SESSION_MS,
            rebalance_timeout_ms=self.SESSION_MS,
            member_id=member.member_id,
            group_instance_id=member.instance_id,
            protocol_type="consumer",
            protocols=[
                JoinGroupRequestProtocol(name="range", metadata=b"\0\1" + subscription.write(1))
            ],
        )

    def _sync(self, number: int, joined: JoinGroupResponse) -> None:
        self._exchange(number, self._sync_request(number, joined), SYNC_VERSION)

    def _sync_request(self, number: int, joined: JoinGroupResponse | None) -> SyncGroupRequest:
        member = self.members[number]
        return SyncGroupRequest(
            group_id=member.group_id,
            generation_id=member.generation,
            member_id=member.member_id,
            group_instance_id=member.instance_id,
            protocol_type="consumer",
            protocol_name="range",
            assignments=[
                SyncGroupRequestAssignment(member_id=each.member_id, assignment=b"")
                for each in (joined.members if joined is not None else ())
            ],
        )

    def _beat(self, number: int, **fields: Any) -> ConsumerGroupHeartbeatResponse | None:
        request = self.consumer_heartbeat(number, **fields)
        response = self._exchange_and_replicate(number, request, CONSUMER_VERSION)
        if response is not None and response.error_code == ErrorCode.NONE:
            self.members[number].epoch = response.member_epoch
            return response  # type: ignore[no-any-return]
        return None

    def _exchange(self, number: int, request: Any, version: int) -> Any:
        """Returns the response; None if it waits, or for another request."""
        contents = self.send(number, frame_of(request, version))
        return _last_response(type(request), version, contents[number])

    def _exchange_and_replicate(self, number: int, request: Any, version: int) -> Any:
        """Returns the response, also if it waits for the replica."""
        contents = self.send(number, frame_of(request, version))
        content = contents[number] + self.replicate()[number]
        return _last_response(type(request), version, content)

    def _same(self, noticed: list[tuple[Any, ...]]) -> list[bytes]:
        first, *others = noticed
        for other in others:
            assert first == other
        return [each[0] for each in first if isinstance(each, tuple)]


def _last_response(request_type: Any, version: int, content: bytes) -> Any:
    """Returns the last response to requests of this type among several; None if there is none."""
    key = request_type.API_KEY
    last = None
    while content:
        size = LENGTH_BYTES + int.from_bytes(content[:LENGTH_BYTES])
        if int.from_bytes(content[LENGTH_BYTES : LENGTH_BYTES + CORRELATION_BYTES]) == key:
            last = content[:size]
        content = content[size:]
    if last is None:
        return None
    start = LENGTH_BYTES + CORRELATION_BYTES + int(response_header_version(key, version) > 0)
    return api(key).response.reader(version)(memoryview(bytearray(last)), start)[0]
