"""The APIs of the members of a classic group.

JoinGroup (key 11): join a classic group.
v1 rebalance timeout; v2 throttling; v4 the member id comes from the coordinator first; v5 static
members; v6 flexible; v7 protocol type and name; v8 a reason; v9 the leader may skip assigning.

SyncGroup (key 14): the leader of a classic group sends the assignment of each member.
v1 throttling; v3 static members; v4 flexible; v5 protocol type and name.

Heartbeat (key 12): a member of a classic group is alive.
v1 throttling; v3 static members; v4 flexible.

LeaveGroup (key 13): members leave a classic group.
v1 throttling; v3 several members, static ones too; v4 flexible; v5 a reason.
"""

from __future__ import annotations

from barnabas.wire.schema import Message, Struct, field, int16, int32, string


class JoinGroupRequest(Message, api_key=11, versions="0-9", flexible="6+", listeners="broker"):
    group_id: string = field()
    session_timeout_ms: int32 = field()
    rebalance_timeout_ms: int32 = field("1+", default=-1, ignorable=True)
    member_id: string = field()
    group_instance_id: string | None = field("5+", default=None)
    protocol_type: string = field()
    protocols: list[JoinGroupRequestProtocol] = field()
    reason: string | None = field("8+", default=None, ignorable=True)


class JoinGroupRequestProtocol(Struct):
    name: string = field()
    metadata: bytes = field()


class JoinGroupResponse(Message, api_key=11, versions="0-9", flexible="6+"):
    throttle_time_ms: int32 = field("2+", ignorable=True)
    error_code: int16 = field()
    generation_id: int32 = field(default=-1)
    protocol_type: string | None = field("7+", default=None, ignorable=True)
    protocol_name: string | None = field(nullable="7+")
    leader: string = field()
    skip_assignment: bool = field("9+")
    member_id: string = field()
    members: list[JoinGroupResponseMember] = field()


class JoinGroupResponseMember(Struct):
    member_id: string = field()
    group_instance_id: string | None = field("5+", default=None, ignorable=True)
    metadata: bytes = field()


class SyncGroupRequest(Message, api_key=14, versions="0-5", flexible="4+", listeners="broker"):
    group_id: string = field()
    generation_id: int32 = field()
    member_id: string = field()
    group_instance_id: string | None = field("3+", default=None)
    protocol_type: string | None = field("5+", default=None, ignorable=True)
    protocol_name: string | None = field("5+", default=None, ignorable=True)
    assignments: list[SyncGroupRequestAssignment] = field()


class SyncGroupRequestAssignment(Struct):
    member_id: string = field()
    assignment: bytes = field()


class SyncGroupResponse(Message, api_key=14, versions="0-5", flexible="4+"):
    throttle_time_ms: int32 = field("1+", ignorable=True)
    error_code: int16 = field()
    protocol_type: string | None = field("5+", default=None, ignorable=True)
    protocol_name: string | None = field("5+", default=None, ignorable=True)
    assignment: bytes = field()


class HeartbeatRequest(Message, api_key=12, versions="0-4", flexible="4+", listeners="broker"):
    group_id: string = field()
    generation_id: int32 = field()
    member_id: string = field()
    group_instance_id: string | None = field("3+", default=None)


class HeartbeatResponse(Message, api_key=12, versions="0-4", flexible="4+"):
    throttle_time_ms: int32 = field("1+", ignorable=True)
    error_code: int16 = field()


class LeaveGroupRequest(Message, api_key=13, versions="0-5", flexible="4+", listeners="broker"):
    group_id: string = field()
    member_id: string = field("0-2")
    members: list[MemberIdentity] = field("3+")


class MemberIdentity(Struct):
    member_id: string = field()
    group_instance_id: string | None = field(default=None)
    reason: string | None = field("5+", default=None, ignorable=True)


class LeaveGroupResponse(Message, api_key=13, versions="0-5", flexible="4+"):
    throttle_time_ms: int32 = field("1+", ignorable=True)
    error_code: int16 = field()
    members: list[MemberResponse] = field("3+")


class MemberResponse(Struct):
    member_id: string = field()
    group_instance_id: string | None = field()
    error_code: int16 = field()
