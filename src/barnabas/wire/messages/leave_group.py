"""LeaveGroup (key 13): members leave a classic group.

v1 throttling; v3 several members, static ones too; v4 flexible; v5 a reason.
"""

from __future__ import annotations

from barnabas.wire.schema import Message, Struct, field, int16, int32, string


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
