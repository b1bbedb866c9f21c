"""Members of classic groups, in few words."""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tests.conformance.same.talk import Talk

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
    what = subscription("plain") if metadata is None else metadata
    return JoinGroupRequest(
        group_id=group,
        session_timeout_ms=session_ms,
        rebalance_timeout_ms=rebalance_ms,
        member_id=member_id,
        group_instance_id=instance,
        protocol_type=protocol_type,
        protocols=[JoinGroupRequestProtocol(name=each, metadata=what) for each in protocols],
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
            SyncGroupRequestAssignment(member_id=to, assignment=each)
            for to, each in (assignments or {}).items()
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
    """A member that has joined; `generation` is the one it knows of."""

    group: str
    member_id: str
    generation: int


def first_member(
    talk: Talk, group: str, word: str = "first", *, version: int = 9, **fields: Any
) -> Member:
    """Alone in a new group, synced: the group is stable."""
    member = joined(talk, group, word, version=version, **fields)
    assigned = {member.member_id: assignment("plain", 0, 1)}
    talk.ask(
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


def joined(talk: Talk, group: str, word: str, *, version: int = 9, **fields: Any) -> Member:
    """Joined, in as many steps as the version takes (KIP-394); not yet synced."""
    answer = talk.ask(join(group, **fields), version)
    if answer.error_code == MEMBER_ID_REQUIRED:
        talk.name(answer.member_id, word)
        answer = talk.ask(join(group, answer.member_id, **fields), version)
    talk.name(answer.member_id, word)
    return Member(group, answer.member_id, answer.generation_id)


def member_id_for(talk: Talk, group: str, word: str, **fields: Any) -> str:
    """The id of somebody who asked to join and was told to come again with it."""
    answer = talk.ask(join(group, **fields))
    assert answer.error_code == MEMBER_ID_REQUIRED
    talk.name(answer.member_id, word)
    return str(answer.member_id)
