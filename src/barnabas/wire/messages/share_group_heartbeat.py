"""ShareGroupHeartbeat (key 76): a share group's member learns its partitions."""

from __future__ import annotations

from barnabas.wire.schema import Message, Struct, field, int16, int32, string, uuid


class ShareGroupHeartbeatRequest(
    Message, api_key=76, versions="1", flexible="0+", listeners="broker"
):
    group_id: string = field()
    member_id: string = field()
    member_epoch: int32 = field()
    rack_id: string | None = field(default=None)
    subscribed_topic_names: list[string] | None = field(default=None)


class ShareGroupHeartbeatResponse(Message, api_key=76, versions="1", flexible="0+"):
    throttle_time_ms: int32 = field()
    error_code: int16 = field()
    error_message: string | None = field(default=None)
    member_id: string | None = field(default=None)
    member_epoch: int32 = field()
    heartbeat_interval_ms: int32 = field()
    assignment: Assignment | None = field(default=None)


class Assignment(Struct):
    topic_partitions: list[TopicPartitions] = field()


class TopicPartitions(Struct):
    topic_id: uuid = field()
    partitions: list[int32] = field()
