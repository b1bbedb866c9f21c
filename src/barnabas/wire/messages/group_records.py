"""Records of `__consumer_offsets` for offsets, classic groups and consumer groups.

`api_key` is the record's type: the int16 before a key, which pairs it with the value.
"""

from __future__ import annotations

from barnabas.wire.schema import Message, Struct, field, int8, int32, int64, string, uuid


class LegacyOffsetCommitKey(Message, api_key=0, versions="0", flexible="none"):
    group: string = field()
    topic: string = field()
    partition: int32 = field()


class LegacyOffsetCommitValue(Message, api_key=0, versions="0", flexible="none"):
    offset: int64 = field()
    metadata: string = field()
    commit_timestamp: int64 = field()


class OffsetCommitKey(Message, api_key=1, versions="0", flexible="none"):
    group: string = field()
    topic: string = field()
    partition: int32 = field()


class OffsetCommitValue(Message, api_key=1, versions="0-4", flexible="4+"):
    offset: int64 = field()
    leader_epoch: int32 = field("3+", default=-1, ignorable=True)
    metadata: string = field()
    commit_timestamp: int64 = field()
    expire_timestamp: int64 = field("1", default=-1, ignorable=True)
    topic_id: uuid = field("4+", tag=0, ignorable=True)


class GroupMetadataKey(Message, api_key=2, versions="0", flexible="none"):
    group: string = field()


class GroupMetadataValue(Message, api_key=2, versions="0-4", flexible="4+"):
    protocol_type: string = field()
    generation: int32 = field()
    protocol: string | None = field()
    leader: string | None = field()
    current_state_timestamp: int64 = field("2+", default=-1, ignorable=True)
    members: list[MemberMetadata] = field()


class MemberMetadata(Struct):
    member_id: string = field()
    group_instance_id: string | None = field("3+", default=None, ignorable=True)
    client_id: string = field()
    client_host: string = field()
    rebalance_timeout: int32 = field("1+", default=-1, ignorable=True)
    session_timeout: int32 = field()
    subscription: bytes = field()
    assignment: bytes = field()


class ConsumerGroupMetadataKey(Message, api_key=3, versions="0", flexible="none"):
    group_id: string = field()


class ConsumerGroupMetadataValue(Message, api_key=3, versions="0"):
    epoch: int32 = field()
    metadata_hash: int64 = field(tag=0)


class ConsumerGroupPartitionMetadataKey(Message, api_key=4, versions="0", flexible="none"):
    group_id: string = field()


class ConsumerGroupPartitionMetadataValue(Message, api_key=4, versions="0"):
    topics: list[TopicMetadata] = field()


class TopicMetadata(Struct):
    topic_id: uuid = field()
    topic_name: string = field()
    num_partitions: int32 = field()
    partition_metadata: list[PartitionMetadata] = field()


class PartitionMetadata(Struct):
    partition: int32 = field()
    racks: list[string] = field()


class ConsumerGroupMemberMetadataKey(Message, api_key=5, versions="0", flexible="none"):
    group_id: string = field()
    member_id: string = field()


class ConsumerGroupMemberMetadataValue(Message, api_key=5, versions="0"):
    instance_id: string | None = field()
    rack_id: string | None = field()
    client_id: string = field()
    client_host: string = field()
    subscribed_topic_names: list[string] = field()
    subscribed_topic_regex: string | None = field()
    rebalance_timeout_ms: int32 = field(default=-1)
    server_assignor: string | None = field()
    classic_member_metadata: ClassicMemberMetadata | None = field(tag=0)


class ClassicMemberMetadata(Struct):
    session_timeout_ms: int32 = field()
    supported_protocols: list[ClassicProtocol] = field()


class ClassicProtocol(Struct):
    name: string = field()
    metadata: bytes = field()


class ConsumerGroupTargetAssignmentMetadataKey(Message, api_key=6, versions="0", flexible="none"):
    group_id: string = field()


class ConsumerGroupTargetAssignmentMetadataValue(Message, api_key=6, versions="0"):
    assignment_epoch: int32 = field()
    assignment_timestamp: int64 = field(tag=0)


class ConsumerGroupTargetAssignmentMemberKey(Message, api_key=7, versions="0", flexible="none"):
    group_id: string = field()
    member_id: string = field()


class ConsumerGroupTargetAssignmentMemberValue(Message, api_key=7, versions="0"):
    topic_partitions: list[TopicPartition] = field()


class TopicPartition(Struct):
    topic_id: uuid = field()
    partitions: list[int32] = field()


class ConsumerGroupCurrentMemberAssignmentKey(Message, api_key=8, versions="0", flexible="none"):
    group_id: string = field()
    member_id: string = field()


class ConsumerGroupCurrentMemberAssignmentValue(Message, api_key=8, versions="0"):
    member_epoch: int32 = field()
    previous_member_epoch: int32 = field()
    state: int8 = field()
    assigned_partitions: list[TopicPartitions] = field()
    partitions_pending_revocation: list[TopicPartitions] = field()


class TopicPartitions(Struct):
    topic_id: uuid = field()
    partitions: list[int32] = field()
    assignment_epochs: list[int32] | None = field(tag=0)


class ConsumerGroupRegularExpressionKey(Message, api_key=16, versions="0", flexible="none"):
    group_id: string = field()
    regular_expression: string = field()


class ConsumerGroupRegularExpressionValue(Message, api_key=16, versions="0"):
    topics: list[string] = field()
    version: int64 = field()
    timestamp: int64 = field()
