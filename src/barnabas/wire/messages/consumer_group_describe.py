"""ConsumerGroupDescribe (key 69): state and members of consumer groups.

v1 whether a member speaks the classic protocol.
"""

from __future__ import annotations

from barnabas.wire.schema import Message, Struct, field, int8, int16, int32, string, uuid


class ConsumerGroupDescribeRequest(
    Message, api_key=69, versions="0-1", flexible="0+", listeners="broker"
):
    group_ids: list[string] = field()
    include_authorized_operations: bool = field()


class ConsumerGroupDescribeResponse(Message, api_key=69, versions="0-1", flexible="0+"):
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
    instance_id: string | None = field(default=None)
    rack_id: string | None = field(default=None)
    member_epoch: int32 = field()
    client_id: string = field()
    client_host: string = field()
    subscribed_topic_names: list[string] = field()
    subscribed_topic_regex: string | None = field(default=None)
    assignment: Assignment = field()
    target_assignment: Assignment = field()
    member_type: int8 = field("1+", default=-1, ignorable=True)


class Assignment(Struct):
    topic_partitions: list[TopicPartitions] = field()


class TopicPartitions(Struct):
    topic_id: uuid = field()
    topic_name: string = field()
    partitions: list[int32] = field()
