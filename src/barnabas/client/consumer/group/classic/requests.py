"""Builds the requests of a member of a classic group."""

from collections.abc import Sequence

from barnabas.client.consumer.group.assignors import PartitionAssignor, SubscribedMember
from barnabas.client.consumer.group.classic.consumer_protocol import write_subscription
from barnabas.client.settings import ConsumerSettings
from barnabas.client.values import PartitionKey
from barnabas.wire.messages.classic_groups import (
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    LeaveGroupRequest,
    MemberIdentity,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)

PROTOCOL_TYPE = "consumer"


class ClassicRequestBuilder:
    """Builds requests with the settings of the member."""

    def __init__(self, settings: ConsumerSettings, assignors: Sequence[PartitionAssignor]) -> None:
        assert settings.group_id is not None
        self._settings = settings
        self._group_id = settings.group_id
        self._assignors = assignors

    def join(
        self,
        member: SubscribedMember,
        last_assignment: tuple[frozenset[PartitionKey], int],
        reason: str | None,
    ) -> JoinGroupRequest:
        """Returns a request that offers every assignor, with the assignor's user data."""
        protocols = [
            JoinGroupRequestProtocol(
                name=assignor.name,
                metadata=write_subscription(member, assignor.user_data(*last_assignment)),
            )
            for assignor in self._assignors
        ]
        return JoinGroupRequest(
            group_id=self._group_id,
            session_timeout_ms=self._settings.session_timeout_ms,
            rebalance_timeout_ms=self._settings.max_poll_interval_ms,
            member_id=member.member_id,
            group_instance_id=member.instance_id,
            protocol_type=PROTOCOL_TYPE,
            protocols=protocols,
            reason=reason,
        )

    def sync(
        self,
        member_id: str,
        generation: int,
        protocol_name: str | None,
        assignments: list[SyncGroupRequestAssignment],
    ) -> SyncGroupRequest:
        return SyncGroupRequest(
            group_id=self._group_id,
            generation_id=generation,
            member_id=member_id,
            group_instance_id=self._settings.group_instance_id,
            protocol_type=PROTOCOL_TYPE,
            protocol_name=protocol_name,
            assignments=assignments,
        )

    def heartbeat(self, member_id: str, generation: int) -> HeartbeatRequest:
        return HeartbeatRequest(
            group_id=self._group_id,
            generation_id=generation,
            member_id=member_id,
            group_instance_id=self._settings.group_instance_id,
        )

    def leave(self, member_id: str, reason: str) -> LeaveGroupRequest:
        return LeaveGroupRequest(
            group_id=self._group_id, members=[MemberIdentity(member_id=member_id, reason=reason)]
        )
