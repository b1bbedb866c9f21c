"""Members of classic groups and their requests."""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tests.conformance.side_by_side.dialog import Dialog

from barnabas.wire.messages.classic_groups import (
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    LeaveGroupRequest,
    MemberIdentity,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)
from barnabas.wire.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
)

MEMBER_ID_REQUIRED = 79


def subscription(*topics: str, version: int = 1) -> bytes:
    return struct.pack(">h", version) + ConsumerProtocolSubscription(topics=list(topics)).write(
        version
    )


def assignment(topic: str, *partitions: int, version: int = 1) -> bytes:
    assigned = [TopicPartition(topic=topic, partitions=list(partitions))]
    return struct.pack(">h", version) + ConsumerProtocolAssignment(
        assigned_partitions=assigned
    ).write(version)


def join(
    group: str,
    member_id: str = "",
    *,
    instance: str | None = None,
    protocols: Sequence[str] = ("range",),
    metadata: bytes | None = None,
    protocol_type: str = "consumer",
    session_ms: int = 30_000,
    rebalance_ms: int = 30_000,
) -> JoinGroupRequest:
    protocol_metadata = subscription("plain") if metadata is None else metadata
    return JoinGroupRequest(
        group_id=group,
        session_timeout_ms=session_ms,
        rebalance_timeout_ms=rebalance_ms,
        member_id=member_id,
        group_instance_id=instance,
        protocol_type=protocol_type,
        protocols=[
            JoinGroupRequestProtocol(name=protocol, metadata=protocol_metadata)
            for protocol in protocols
        ],
        reason="to compare",
    )


def sync(
    group: str,
    generation: int,
    member_id: str,
    assignments: dict[str, bytes] | None = None,
    *,
    instance: str | None = None,
    protocol_type: str | None = "consumer",
    protocol: str | None = "range",
) -> SyncGroupRequest:
    return SyncGroupRequest(
        group_id=group,
        generation_id=generation,
        member_id=member_id,
        group_instance_id=instance,
        protocol_type=protocol_type,
        protocol_name=protocol,
        assignments=[
            SyncGroupRequestAssignment(member_id=to_member, assignment=assigned)
            for to_member, assigned in (assignments or {}).items()
        ],
    )


def heartbeat(
    group: str, generation: int, member_id: str, instance: str | None = None
) -> HeartbeatRequest:
    return HeartbeatRequest(
        group_id=group,
        generation_id=generation,
        member_id=member_id,
        group_instance_id=instance,
    )


def leave(group: str, member_id: str, version: int = 5) -> LeaveGroupRequest:
    if version < 3:
        return LeaveGroupRequest(group_id=group, member_id=member_id)
    return leave_all(group, (member_id, None))


def leave_all(group: str, *members: tuple[str, str | None]) -> LeaveGroupRequest:
    return LeaveGroupRequest(
        group_id=group,
        members=[
            MemberIdentity(member_id=member, group_instance_id=instance, reason="done")
            for member, instance in members
        ],
    )


@dataclass(slots=True)
class Member:
    """A member that has joined, with the last generation that it knows."""

    group: str
    member_id: str
    generation: int


def first_member(
    dialog: Dialog, group: str, alias: str = "first", *, version: int = 9, **fields: Any
) -> Member:
    """Joins and syncs the only member of a new group, which is then stable."""
    member = join_member(dialog, group, alias, version=version, **fields)
    assigned = {member.member_id: assignment("plain", 0, 1)}
    dialog.send(
        sync(
            group,
            member.generation,
            member.member_id,
            assigned,
            protocol=fields.get("protocols", ["range"])[0],
            protocol_type=fields.get("protocol_type", "consumer"),
            instance=fields.get("instance"),
        ),
        min(version, 5),
    )
    return member


def join_member(
    dialog: Dialog, group: str, alias: str, *, version: int = 9, **fields: Any
) -> Member:
    """Joins a member, in two steps where the version needs them (KIP-394), without a sync."""
    response = dialog.send(join(group, **fields), version)
    if response.error_code == MEMBER_ID_REQUIRED:
        dialog.set_alias(response.member_id, alias)
        response = dialog.send(join(group, response.member_id, **fields), version)
    dialog.set_alias(response.member_id, alias)
    return Member(group, response.member_id, response.generation_id)


def request_member_id(dialog: Dialog, group: str, alias: str, **fields: Any) -> str:
    """Returns the id of a pending member: MEMBER_ID_REQUIRED of a JoinGroup (KIP-394)."""
    response = dialog.send(join(group, **fields))
    assert response.error_code == MEMBER_ID_REQUIRED
    dialog.set_alias(response.member_id, alias)
    return str(response.member_id)
