"""Groups whose members send raw requests, as fast as the coordinator responds.

A real consumer learns of a rebalance with its next heartbeat, seconds later. These members send the
next request as soon as they have a response, so that the coordinator is measured.
"""

import math
import uuid
from collections.abc import Sequence

from barnabas.wire.apis import ApiKey
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.classic_groups import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
    JoinGroupResponseMember,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)
from barnabas.wire.messages.consumer_groups import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from barnabas.wire.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
)
from bench.connection_swarm import ConnectionSwarm
from bench.raw_client import Address, frame, parse

JOIN_VERSION = 9
SYNC_VERSION = 5
HEARTBEAT_VERSION = 4
CONSUMER_HEARTBEAT_VERSION = 1

SESSION_MS = 300_000
"""Long, so that no member is removed during a measurement."""

PROTOCOL = "range"


class ClassicGroup:
    """A group of the classic protocol; members have the number of their connection."""

    def __init__(self, address: Address, group_id: str, topic: str, partitions: int) -> None:
        self.group_id = group_id
        self.topic = topic
        self.partitions = partitions
        self.members: list[ClassicMember] = []
        self.previous_generation = 0
        """Members of this generation or an older one have to rejoin."""
        self._swarm = ConnectionSwarm(address, 0)

    def join(self, count: int) -> None:
        """Add members; returns when all members have an assignment of one generation."""
        new_members = {self._swarm.add(): ClassicMember(self) for _ in range(count)}
        self._swarm.exchange(
            {number: new_member.join() for number, new_member in new_members.items()},
            lambda number, response: new_members[number].on_member_id(response),
        )
        requests = {number: new_member.join() for number, new_member in new_members.items()}
        requests |= {number: member.heartbeat() for number, member in enumerate(self.members)}
        self.previous_generation = self.generation if self.members else 0
        self.members += new_members.values()
        while requests:
            self._swarm.exchange(
                requests, lambda number, response: self.members[number].on_response(response)
            )
            self.previous_generation = self.generation - 1
            requests = {
                number: member.heartbeat()
                for number, member in enumerate(self.members)
                if member.generation <= self.previous_generation
            }

    @property
    def generation(self) -> int:
        return max(member.generation for member in self.members)

    def heartbeats(self) -> list[bytes]:
        """Returns a frame for each member, to send repeatedly."""
        return [member.heartbeat() for member in self.members]

    def assignments(
        self, members: Sequence[JoinGroupResponseMember]
    ) -> list[SyncGroupRequestAssignment]:
        share = math.ceil(self.partitions / len(members))
        return [
            SyncGroupRequestAssignment(
                member_id=member.member_id,
                assignment=self._assignment(range(first, min(first + share, self.partitions))),
            )
            for member, first in zip(members, range(0, share * len(members), share), strict=True)
        ]

    def close(self) -> None:
        """Close the connections; the members stay until their sessions expire."""
        self._swarm.close()

    def _assignment(self, partitions: range) -> bytes:
        assigned = [TopicPartition(topic=self.topic, partitions=list(partitions))]
        return b"\0\1" + ConsumerProtocolAssignment(assigned_partitions=assigned).write(1)


class ClassicMember:
    """The state of one member, and its next request."""

    def __init__(self, group: ClassicGroup) -> None:
        self.generation = 0
        """The generation of its assignment."""
        self._group = group
        self._member_id = ""
        self._joining = 0
        self._last_api_key = ApiKey.JOIN_GROUP

    def join(self) -> bytes:
        subscription = ConsumerProtocolSubscription(topics=[self._group.topic])
        request = JoinGroupRequest(
            group_id=self._group.group_id,
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=SESSION_MS,
            member_id=self._member_id,
            protocol_type="consumer",
            protocols=[
                JoinGroupRequestProtocol(name=PROTOCOL, metadata=b"\0\1" + subscription.write(1))
            ],
        )
        self._last_api_key = ApiKey.JOIN_GROUP
        return frame(ApiKey.JOIN_GROUP, JOIN_VERSION, request)

    def heartbeat(self) -> bytes:
        request = HeartbeatRequest(
            group_id=self._group.group_id,
            generation_id=self.generation,
            member_id=self._member_id,
        )
        self._last_api_key = ApiKey.HEARTBEAT
        return frame(ApiKey.HEARTBEAT, HEARTBEAT_VERSION, request)

    def on_member_id(self, response: memoryview) -> None:
        """A new member gets an id to join with (KIP-394)."""
        joined = parse(ApiKey.JOIN_GROUP, JOIN_VERSION, JoinGroupResponse, response)
        if joined.error_code != ErrorCode.MEMBER_ID_REQUIRED:
            raise RuntimeError(f"a new member has not got an id: error {joined.error_code}")
        self._member_id = joined.member_id

    def on_response(self, response: memoryview) -> bytes | None:
        """Returns the next request; None if the member is stable in a new generation."""
        match self._last_api_key:
            case ApiKey.JOIN_GROUP:
                return self._on_join_response(
                    parse(ApiKey.JOIN_GROUP, JOIN_VERSION, JoinGroupResponse, response)
                )
            case ApiKey.SYNC_GROUP:
                synced = parse(ApiKey.SYNC_GROUP, SYNC_VERSION, SyncGroupResponse, response)
                if synced.error_code == ErrorCode.REBALANCE_IN_PROGRESS:
                    return self.join()
                expect_success(synced.error_code)
                self.generation = self._joining
                return None
        heartbeat_response = parse(ApiKey.HEARTBEAT, HEARTBEAT_VERSION, HeartbeatResponse, response)
        if heartbeat_response.error_code == ErrorCode.REBALANCE_IN_PROGRESS:
            return self.join()
        expect_success(heartbeat_response.error_code)
        return self.heartbeat() if self.generation <= self._group.previous_generation else None

    def _on_join_response(self, joined: JoinGroupResponse) -> bytes:
        expect_success(joined.error_code)
        self._joining = joined.generation_id
        leads = joined.leader == self._member_id
        request = SyncGroupRequest(
            group_id=self._group.group_id,
            generation_id=joined.generation_id,
            member_id=self._member_id,
            protocol_type="consumer",
            protocol_name=PROTOCOL,
            assignments=self._group.assignments(joined.members) if leads else [],
        )
        self._last_api_key = ApiKey.SYNC_GROUP
        return frame(ApiKey.SYNC_GROUP, SYNC_VERSION, request)


class ConsumerGroup:
    """A group of KIP-848: the coordinator assigns, and the only requests are heartbeats."""

    def __init__(self, address: Address, group_id: str, topic: str, partitions: int) -> None:
        self.group_id = group_id
        self.topic = topic
        self.partitions = partitions
        self.members: list[ConsumerMember] = []
        self._swarm = ConnectionSwarm(address, 0)

    def join(self, count: int) -> None:
        """Add members; returns when every partition is with its assigned member."""
        new_members = [ConsumerMember(self) for _ in range(count)]
        requests = {self._swarm.add(): new_member.join() for new_member in new_members}
        self.members += new_members
        while requests:
            self._swarm.exchange(
                requests, lambda number, response: self.members[number].on_response(response)
            )
            requests = {
                number: member.heartbeat()
                for number, member in enumerate(self.members)
                if not self._is_stable(member)
            }

    @property
    def epoch(self) -> int:
        return max(member.epoch for member in self.members)

    def heartbeats(self) -> list[bytes]:
        """Returns a frame for each member, to send repeatedly."""
        return [member.heartbeat() for member in self.members]

    def close(self) -> None:
        """Close the connections; the members stay until their sessions expire."""
        self._swarm.close()

    def _is_stable(self, member: "ConsumerMember") -> bool:
        share = self.partitions / len(self.members)
        return member.epoch == self.epoch and abs(member.owned - share) < 1


class ConsumerMember:
    """The state of one member, and its next request."""

    def __init__(self, group: ConsumerGroup) -> None:
        self.epoch = 0
        self.owned = 0
        """The number of partitions that it has and has acknowledged."""
        self._group = group
        self._member_id = str(uuid.uuid4())
        self._unacknowledged: list[TopicPartitions] | None = None

    def join(self) -> bytes:
        request = ConsumerGroupHeartbeatRequest(
            group_id=self._group.group_id,
            member_id=self._member_id,
            member_epoch=0,
            rebalance_timeout_ms=SESSION_MS,
            subscribed_topic_names=[self._group.topic],
            topic_partitions=[],
        )
        return frame(ApiKey.CONSUMER_GROUP_HEARTBEAT, CONSUMER_HEARTBEAT_VERSION, request)

    def heartbeat(self) -> bytes:
        request = ConsumerGroupHeartbeatRequest(
            group_id=self._group.group_id,
            member_id=self._member_id,
            member_epoch=self.epoch,
            topic_partitions=self._unacknowledged,
        )
        return frame(ApiKey.CONSUMER_GROUP_HEARTBEAT, CONSUMER_HEARTBEAT_VERSION, request)

    def on_response(self, response: memoryview) -> bytes | None:
        """Returns the acknowledgement of an assignment, if the response has one."""
        heartbeat_response = parse(
            ApiKey.CONSUMER_GROUP_HEARTBEAT,
            CONSUMER_HEARTBEAT_VERSION,
            ConsumerGroupHeartbeatResponse,
            response,
        )
        expect_success(heartbeat_response.error_code)
        self.epoch = heartbeat_response.member_epoch
        self._unacknowledged = None
        if heartbeat_response.assignment is None:
            return None
        self._unacknowledged = heartbeat_response.assignment.topic_partitions
        self.owned = sum(len(topic.partitions) for topic in self._unacknowledged)
        return self.heartbeat()


def expect_success(code: int) -> None:
    if code:
        raise RuntimeError(f"a member got an error: {ErrorCode(code).name}")
