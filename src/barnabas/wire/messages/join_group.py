"""JoinGroup (key 11): become a member of a classic group, and learn who leads it.

v1 rebalance timeout; v2 throttling; v4 the member id comes from the coordinator first; v5 static
members; v6 flexible; v7 protocol type and name; v8 a reason; v9 the leader may skip assigning.
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
