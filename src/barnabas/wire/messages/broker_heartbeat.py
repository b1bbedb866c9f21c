"""BrokerHeartbeat (key 63): a broker tells the controller that it lives, and what it wants.

v1 offline log directories; v2 cordoned log directories (KIP-1066).
"""

from __future__ import annotations

from barnabas.wire.schema import Message, field, int16, int32, int64, uuid


class BrokerHeartbeatRequest(
    Message, api_key=63, versions="0-2", flexible="0+", listeners="controller"
):
    broker_id: int32 = field()
    broker_epoch: int64 = field(default=-1)
    current_metadata_offset: int64 = field()
    want_fence: bool = field()
    want_shut_down: bool = field()
    offline_log_dirs: list[uuid] = field("1+", tag=0)
    cordoned_log_dirs: list[uuid] | None = field("2+", tag=1, default=None)


class BrokerHeartbeatResponse(Message, api_key=63, versions="0-2", flexible="0+"):
    throttle_time_ms: int32 = field()
    error_code: int16 = field()
    is_caught_up: bool = field()
    is_fenced: bool = field(default=True)
    should_shut_down: bool = field()
