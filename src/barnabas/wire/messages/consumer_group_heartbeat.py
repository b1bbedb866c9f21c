"""ConsumerGroupHeartbeat (key 68): a consumer group's member says what it has and learns its part.

v1 subscription by regular expression, and member ids made by the client.
"""

from __future__ import annotations

from barnabas.wire.schema import Message, Struct, field, int16, int32, string, uuid


class ConsumerGroupHeartbeatRequest(
    Message, api_key=68, versions="0-1", flexible="0+", listeners="broker"
):
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


class ConsumerGroupHeartbeatResponse(Message, api_key=68, versions="0-1", flexible="0+"):
    throttle_time_ms: int32 = field()
    error_code: int16 = field()
    error_message: string | None = field(default=None)
    member_id: string | None = field(default=None)
    member_epoch: int32 = field()
    heartbeat_interval_ms: int32 = field()
    assignment: Assignment | None = field(default=None)


class Assignment(Struct):
    topic_partitions: list[TopicPartitions] = field()
