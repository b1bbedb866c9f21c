"""The APIs of consumer groups.

ConsumerGroupHeartbeat (key 68): a consumer group's member says what it has and learns its part.
v1 subscription by regular expression, and member ids made by the client.

ConsumerGroupDescribe (key 69): state and members of consumer groups.
v1 whether a member speaks the classic protocol.
"""

from __future__ import annotations

from barnabas.wire.schema import Message, Struct, field, int8, int16, int32, string, uuid


class ConsumerGroupHeartbeatRequest(Message, api_key=68, versions="0-1", listeners="broker"):
    group_id: string = field()
    member_id: string = field()
    member_epoch: int32 = field()
    instance_id: string | None = field(default=None)
    rack_id: string | None = field(default=None)
    rebalance_timeout_ms: int32 = field(default=-1)
    subscribed_topic_names: list[string] | None = field(default=None)
    subscribed_topic_regex: string | None = field("1+", default=None)
    server_assignor: string | None = field(default=None)
    topic_partitions: list[TopicPartitions] | None = field(default=None)


class TopicPartitions(Struct):
    topic_id: uuid = field()
    partitions: list[int32] = field()


class ConsumerGroupHeartbeatResponse(Message, api_key=68, versions="0-1"):
    throttle_time_ms: int32 = field()
    error_code: int16 = field()
    error_message: string | None = field(default=None)
    member_id: string | None = field(default=None)
    member_epoch: int32 = field()
    heartbeat_interval_ms: int32 = field()
    assignment: Assignment | None = field(default=None)


class Assignment(Struct):
    topic_partitions: list[TopicPartitions] = field()


class ConsumerGroupDescribeRequest(Message, api_key=69, versions="0-1", listeners="broker"):
    group_ids: list[string] = field()
    include_authorized_operations: bool = field()


class ConsumerGroupDescribeResponse(Message, api_key=69, versions="0-1"):
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
    assignment: DescribedAssignment = field()
    target_assignment: DescribedAssignment = field()
    member_type: int8 = field("1+", default=-1, ignorable=True)


class DescribedAssignment(Struct):
    topic_partitions: list[DescribedTopicPartitions] = field()


class DescribedTopicPartitions(Struct):
    topic_id: uuid = field()
    topic_name: string = field()
    partitions: list[int32] = field()
