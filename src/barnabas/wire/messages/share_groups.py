"""The APIs of share groups.

ShareGroupHeartbeat (key 76): a member of a share group gets its assignment.

ShareGroupDescribe (key 77): state and members of share groups.
"""

from __future__ import annotations

from barnabas.wire.messages.consumer_groups import (
    Assignment,
    DescribedAssignment,
)
from barnabas.wire.schema import Message, Struct, field, int16, int32, string


class ShareGroupHeartbeatRequest(Message, api_key=76, versions="1", listeners="broker"):
    group_id: string = field()
    member_id: string = field()
    member_epoch: int32 = field()
    rack_id: string | None = field(default=None)
    subscribed_topic_names: list[string] | None = field(default=None)


class ShareGroupHeartbeatResponse(Message, api_key=76, versions="1"):
    throttle_time_ms: int32 = field()
    error_code: int16 = field()
    error_message: string | None = field(default=None)
    member_id: string | None = field(default=None)
    member_epoch: int32 = field()
    heartbeat_interval_ms: int32 = field()
    assignment: Assignment | None = field(default=None)


class ShareGroupDescribeRequest(Message, api_key=77, versions="1", listeners="broker"):
    group_ids: list[string] = field()
    include_authorized_operations: bool = field()


class ShareGroupDescribeResponse(Message, api_key=77, versions="1"):
    throttle_time_ms: int32 = field()
    groups: list[DescribedGroup] = field()


class DescribedGroup(Struct):
    error_code: int16 = field()
    error_message: string | None = field(default=None)
    group_id: string = field()
    group_state: string = field()
    group_epoch: int32 = field()
    assignment_epoch: int32 = field()
    assignor_name: string = field()
    members: list[Member] = field()
    authorized_operations: int32 = field(default=-(2**31))


class Member(Struct):
    member_id: string = field()
    rack_id: string | None = field(default=None)
    member_epoch: int32 = field()
    client_id: string = field()
    client_host: string = field()
    subscribed_topic_names: list[string] = field()
    assignment: DescribedAssignment = field()
