"""Heartbeat (key 12): tell the coordinator that a member of a classic group lives.

v1 throttling; v3 static members; v4 flexible.
"""

from __future__ import annotations

from barnabas.wire.schema import Message, field, int16, int32, string


class HeartbeatRequest(Message, api_key=12, versions="0-4", flexible="4+", listeners="broker"):
    group_id: string = field()
    generation_id: int32 = field()
    member_id: string = field()
    group_instance_id: string | None = field("3+", default=None)


class HeartbeatResponse(Message, api_key=12, versions="0-4", flexible="4+"):
    throttle_time_ms: int32 = field("1+", ignorable=True)
    error_code: int16 = field()
