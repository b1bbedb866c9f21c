"""FindCoordinator (key 10): find the coordinator of a group, transactional id or share partition.

v1 kinds of keys, error messages; v3 flexible; v4 several keys at once; v5 retriable transaction
errors (KIP-890); v6 share partitions (KIP-932).
"""

from __future__ import annotations

from barnabas.wire.schema import Message, Struct, field, int8, int16, int32, string


class FindCoordinatorRequest(
    Message, api_key=10, versions="0-6", flexible="3+", listeners="broker"
):
    key: string = field("0-3")
    key_type: int8 = field("1+")
    coordinator_keys: list[string] = field("4+")


class FindCoordinatorResponse(Message, api_key=10, versions="0-6", flexible="3+"):
    throttle_time_ms: int32 = field("1+", ignorable=True)
    error_code: int16 = field("0-3")
    error_message: string | None = field("1-3", ignorable=True)
    node_id: int32 = field("0-3")
    host: string = field("0-3")
    port: int32 = field("0-3")
    coordinators: list[Coordinator] = field("4+")


class Coordinator(Struct):
    key: string = field()
    node_id: int32 = field()
    host: string = field()
    port: int32 = field()
    error_code: int16 = field()
    error_message: string | None = field()
