"""Groups whose members speak the protocol themselves, as fast as the coordinator lets them.

A real consumer hears of a rebalance with its next heartbeat, seconds later. These ask again as soon
as they have an answer, so that what is measured is the coordinator.
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
from bench.raw_client import Address, frame, parse
from bench.connection_swarm import ConnectionSwarm

JOIN_VERSION = 9
SYNC_VERSION = 5
HEARTBEAT_VERSION = 4
CONSUMER_HEARTBEAT_VERSION = 1

SESSION_MS = 300_000
"""Long: nobody is to be thrown out while something else is measured."""

PROTOCOL = "range"


class ClassicGroup:
    """Members by the number of their connection."""

    def __init__(self, address: Address, group_id: str, topic: str, partitions: int) -> None:
        self.group_id = group_id
        self.topic = topic
        self.partitions = partitions
        self.members: list[ClassicMember] = []
        self.previous_generation = 0
        """The generation that everybody is to leave."""
        self._swarm = ConnectionSwarm(address, 0)

    def join(self, count: int) -> None:
        """Let so many more in; returns when all have their assignment, in one generation."""
        newcomers = {self._swarm.add(): ClassicMember(self) for _ in range(count)}
        self._swarm.exchange(
            {number: newcomer.join() for number, newcomer in newcomers.items()},
            lambda number, answer: newcomers[number].on_member_id(answer),
        )
        asked = {number: newcomer.join() for number, newcomer in newcomers.items()}
        asked |= {number: member.heartbeat() for number, member in enumerate(self.members)}
        self.previous_generation = self.generation if self.members else 0
        self.members += newcomers.values()
        while asked:
            self._swarm.exchange(asked, lambda number, answer: self.members[number].on_response(answer))
            self.previous_generation = self.generation - 1
            asked = {
                number: member.heartbeat()
                for number, member in enumerate(self.members)
                if member.generation <= self.previous_generation
            }

    @property
    def generation(self) -> int:
        return max(member.generation for member in self.members)

    def heartbeats(self) -> list[bytes]:
        """A frame for each member to send again and again."""
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
        """The connections; the members stay until their sessions end."""
        self._swarm.close()

    def _assignment(self, partitions: range) -> bytes:
        assigned = [TopicPartition(topic=self.topic, partitions=list(partitions))]
        return b"\0\1" + ConsumerProtocolAssignment(assigned_partitions=assigned).write(1)


class ClassicMember:
    """What one member knows, and what it asks next."""

    def __init__(self, group: ClassicGroup) -> None:
        self.generation = 0
        """The one it has an assignment of."""
        self._group = group
        self._member_id = ""
        self._joining = 0
        self._asked = ApiKey.JOIN_GROUP

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
        self._asked = ApiKey.JOIN_GROUP
        return frame(ApiKey.JOIN_GROUP, JOIN_VERSION, request)

    def heartbeat(self) -> bytes:
        request = HeartbeatRequest(
            group_id=self._group.group_id,
            generation_id=self.generation,
            member_id=self._member_id,
        )
        self._asked = ApiKey.HEARTBEAT
        return frame(ApiKey.HEARTBEAT, HEARTBEAT_VERSION, request)

    def on_member_id(self, answer: memoryview) -> None:
        """Who joins for the first time is given an id to join with (KIP-394)."""
        joined = parse(ApiKey.JOIN_GROUP, JOIN_VERSION, JoinGroupResponse, answer)
        if joined.error_code != ErrorCode.MEMBER_ID_REQUIRED:
            raise RuntimeError(f"a newcomer was not given an id: error {joined.error_code}")
        self._member_id = joined.member_id

    def on_response(self, answer: memoryview) -> bytes | None:
        """What to ask next; None at rest, in a new generation."""
        match self._asked:
            case ApiKey.JOIN_GROUP:
                return self._on_join_response(
                    parse(ApiKey.JOIN_GROUP, JOIN_VERSION, JoinGroupResponse, answer)
                )
            case ApiKey.SYNC_GROUP:
                synced = parse(ApiKey.SYNC_GROUP, SYNC_VERSION, SyncGroupResponse, answer)
                if synced.error_code == ErrorCode.REBALANCE_IN_PROGRESS:
                    return self.join()
                expect_success(synced.error_code)
                self.generation = self._joining
                return None
        beaten = parse(ApiKey.HEARTBEAT, HEARTBEAT_VERSION, HeartbeatResponse, answer)
        if beaten.error_code == ErrorCode.REBALANCE_IN_PROGRESS:
            return self.join()
        expect_success(beaten.error_code)
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
        self._asked = ApiKey.SYNC_GROUP
        return frame(ApiKey.SYNC_GROUP, SYNC_VERSION, request)


class ConsumerGroup:
    """The same by KIP-848: the coordinator assigns, and heartbeats are all there is."""

    def __init__(self, address: Address, group_id: str, topic: str, partitions: int) -> None:
        self.group_id = group_id
        self.topic = topic
        self.partitions = partitions
        self.members: list[ConsumerMember] = []
        self._swarm = ConnectionSwarm(address, 0)

    def join(self, count: int) -> None:
        """Let so many more in; returns when every partition is where it belongs."""
        newcomers = [ConsumerMember(self) for _ in range(count)]
        asked = {self._swarm.add(): newcomer.join() for newcomer in newcomers}
        self.members += newcomers
        while asked:
            self._swarm.exchange(asked, lambda number, answer: self.members[number].on_response(answer))
            asked = {
                number: member.heartbeat()
                for number, member in enumerate(self.members)
                if not self._is_settled(member)
            }

    @property
    def epoch(self) -> int:
        return max(member.epoch for member in self.members)

    def heartbeats(self) -> list[bytes]:
        """A frame for each member to send again and again."""
        return [member.heartbeat() for member in self.members]

    def close(self) -> None:
        """The connections; the members stay until their sessions end."""
        self._swarm.close()

    def _is_settled(self, member: "ConsumerMember") -> bool:
        share = self.partitions / len(self.members)
        return member.epoch == self.epoch and abs(member.owned - share) < 1


class ConsumerMember:
    """What one member knows, and what it asks next."""

    def __init__(self, group: ConsumerGroup) -> None:
        self.epoch = 0
        self.owned = 0
        """How many partitions it has and has told of."""
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

    def on_response(self, answer: memoryview) -> bytes | None:
        """What to ask at once: the acknowledgement of an assignment, if there was one."""
        beaten = parse(
            ApiKey.CONSUMER_GROUP_HEARTBEAT,
            CONSUMER_HEARTBEAT_VERSION,
            ConsumerGroupHeartbeatResponse,
            answer,
        )
        expect_success(beaten.error_code)
        self.epoch = beaten.member_epoch
        self._unacknowledged = None
        if beaten.assignment is None:
            return None
        self._unacknowledged = beaten.assignment.topic_partitions
        self.owned = sum(len(topic.partitions) for topic in self._unacknowledged)
        return self.heartbeat()


def expect_success(code: int) -> None:
    if code:
        raise RuntimeError(f"a member was refused: {ErrorCode(code).name}")
