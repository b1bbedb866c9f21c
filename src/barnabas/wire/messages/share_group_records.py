"""Records of `__consumer_offsets` for share groups: members, epochs and assignments.

`api_key` is the record's type: the int16 before a key, which pairs it with the value.
"""

from __future__ import annotations

from barnabas.wire.schema import Message, Struct, field, int8, int32, int64, string, uuid


class ShareGroupMemberMetadataKey(Message, api_key=10, versions="0", flexible="none"):
    group_id: string = field()
    member_id: string = field()


class ShareGroupMemberMetadataValue(Message, api_key=10, versions="0"):
    rack_id: string | None = field()
    client_id: string = field()
    client_host: string = field()
    subscribed_topic_names: list[string] = field()


class ShareGroupMetadataKey(Message, api_key=11, versions="0", flexible="none"):
    group_id: string = field()


class ShareGroupMetadataValue(Message, api_key=11, versions="0"):
    epoch: int32 = field()
    metadata_hash: int64 = field()


class ShareGroupTargetAssignmentMetadataKey(Message, api_key=12, versions="0", flexible="none"):
    group_id: string = field()


class ShareGroupTargetAssignmentMetadataValue(Message, api_key=12, versions="0"):
    assignment_epoch: int32 = field()
    assignment_timestamp: int64 = field(tag=0)


class ShareGroupTargetAssignmentMemberKey(Message, api_key=13, versions="0", flexible="none"):
    group_id: string = field()
    member_id: string = field()


class ShareGroupTargetAssignmentMemberValue(Message, api_key=13, versions="0"):
    topic_partitions: list[TopicPartition] = field()


class TopicPartition(Struct):
    topic_id: uuid = field()
    partitions: list[int32] = field()


class ShareGroupCurrentMemberAssignmentKey(Message, api_key=14, versions="0", flexible="none"):
    group_id: string = field()
    member_id: string = field()


class ShareGroupCurrentMemberAssignmentValue(Message, api_key=14, versions="0"):
    member_epoch: int32 = field()
    previous_member_epoch: int32 = field()
    state: int8 = field()
    assigned_partitions: list[TopicPartitions] = field()


class TopicPartitions(Struct):
    topic_id: uuid = field()
    partitions: list[int32] = field()


class ShareGroupStatePartitionMetadataKey(Message, api_key=15, versions="0", flexible="none"):
    group_id: string = field()


class ShareGroupStatePartitionMetadataValue(Message, api_key=15, versions="0"):
    initializing_topics: list[TopicPartitionsInfo] = field()
    initialized_topics: list[TopicPartitionsInfo] = field()
    deleting_topics: list[TopicInfo] = field()


class TopicPartitionsInfo(Struct):
    topic_id: uuid = field()
    topic_name: string = field()
    partitions: list[int32] = field()


class TopicInfo(Struct):
    topic_id: uuid = field()
    topic_name: string = field()
