"""SyncGroup (key 14): the leader of a classic group hands in what each member receives.

v1 throttling; v3 static members; v4 flexible; v5 protocol type and name.
"""

from __future__ import annotations

from barnabas.wire.schema import Message, Struct, field, int16, int32, string


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
