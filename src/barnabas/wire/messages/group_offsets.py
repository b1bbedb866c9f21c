"""The APIs of the committed offsets of a group.

OffsetCommit (key 8): commit the offsets of a group.
v3 throttling; v5 no retention time; v6 leader epochs; v7 static members; v8 flexible; v9 members of
the new group protocol (KIP-848); v10 topics by id.

TxnOffsetCommit (key 28): store a group's offsets as part of a transaction.
v2 leader epochs; v3 flexible, member id and generation (KIP-447); v4 retriable transaction errors;
v5 the commit adds the group to the transaction (KIP-890); v6 topics by id.

OffsetFetch (key 9): the offsets that groups have committed.
v2 null requests all topics, an error for the whole response; v3 throttling; v5 leader epochs; v6
flexible; v7 wait for open transactions (KIP-447); v8 several groups at once; v9 member id and epoch
(KIP-848); v10 topics by id.

OffsetDelete (key 47): delete committed offsets of a group.
"""

from __future__ import annotations

from barnabas.wire.schema import Message, Struct, field, int16, int32, int64, string, uuid


class OffsetCommitRequest(Message, api_key=8, versions="2-10", flexible="8+", listeners="broker"):
    group_id: string = field()
    generation_id_or_member_epoch: int32 = field(default=-1)
    member_id: string = field()
    group_instance_id: string | None = field("7+", default=None)
    retention_time_ms: int64 = field("2-4", default=-1, ignorable=True)
    topics: list[OffsetCommitRequestTopic] = field()


class OffsetCommitRequestTopic(Struct):
    name: string = field("0-9", ignorable=True)
    topic_id: uuid = field("10+", ignorable=True)
    partitions: list[OffsetCommitRequestPartition] = field()


class OffsetCommitRequestPartition(Struct):
    partition_index: int32 = field()
    committed_offset: int64 = field()
    committed_leader_epoch: int32 = field("6+", default=-1, ignorable=True)
    committed_metadata: string | None = field()


class OffsetCommitResponse(Message, api_key=8, versions="2-10", flexible="8+"):
    throttle_time_ms: int32 = field("3+", ignorable=True)
    topics: list[OffsetCommitResponseTopic] = field()


class OffsetCommitResponseTopic(Struct):
    name: string = field("0-9", ignorable=True)
    topic_id: uuid = field("10+", ignorable=True)
    partitions: list[OffsetCommitResponsePartition] = field()


class OffsetCommitResponsePartition(Struct):
    partition_index: int32 = field()
    error_code: int16 = field()


class TxnOffsetCommitRequest(
    Message, api_key=28, versions="0-6", flexible="3+", listeners="broker"
):
    transactional_id: string = field()
    group_id: string = field()
    producer_id: int64 = field()
    producer_epoch: int16 = field()
    generation_id_or_member_epoch: int32 = field("3+", default=-1)
    member_id: string = field("3+")
    group_instance_id: string | None = field("3+", default=None)
    topics: list[TxnOffsetCommitRequestTopic] = field()


class TxnOffsetCommitRequestTopic(Struct):
    name: string = field("0-5", ignorable=True)
    topic_id: uuid = field("6+", ignorable=True)
    partitions: list[TxnOffsetCommitRequestPartition] = field()


class TxnOffsetCommitRequestPartition(Struct):
    partition_index: int32 = field()
    committed_offset: int64 = field()
    committed_leader_epoch: int32 = field("2+", default=-1, ignorable=True)
    committed_metadata: string | None = field()


class TxnOffsetCommitResponse(Message, api_key=28, versions="0-6", flexible="3+"):
    throttle_time_ms: int32 = field()
    topics: list[TxnOffsetCommitResponseTopic] = field()


class TxnOffsetCommitResponseTopic(Struct):
    name: string = field("0-5", ignorable=True)
    topic_id: uuid = field("6+", ignorable=True)
    partitions: list[TxnOffsetCommitResponsePartition] = field()


class TxnOffsetCommitResponsePartition(Struct):
    partition_index: int32 = field()
    error_code: int16 = field()


class OffsetFetchRequest(Message, api_key=9, versions="1-10", flexible="6+", listeners="broker"):
    group_id: string = field("0-7")
    topics: list[OffsetFetchRequestTopic] | None = field("0-7", nullable="2-7")
    groups: list[OffsetFetchRequestGroup] = field("8+")
    require_stable: bool = field("7+")


class OffsetFetchRequestTopic(Struct):
    name: string = field()
    partition_indexes: list[int32] = field()


class OffsetFetchRequestGroup(Struct):
    group_id: string = field()
    member_id: string | None = field("9+", default=None, ignorable=True)
    member_epoch: int32 = field("9+", default=-1, ignorable=True)
    topics: list[OffsetFetchRequestTopics] | None = field()


class OffsetFetchRequestTopics(Struct):
    name: string = field("8-9", ignorable=True)
    topic_id: uuid = field("10+", ignorable=True)
    partition_indexes: list[int32] = field()


class OffsetFetchResponse(Message, api_key=9, versions="1-10", flexible="6+"):
    throttle_time_ms: int32 = field("3+", ignorable=True)
    topics: list[OffsetFetchResponseTopic] = field("0-7")
    error_code: int16 = field("2-7", ignorable=True)
    groups: list[OffsetFetchResponseGroup] = field("8+")


class OffsetFetchResponseTopic(Struct):
    name: string = field()
    partitions: list[OffsetFetchResponsePartition] = field()


class OffsetFetchResponsePartition(Struct):
    partition_index: int32 = field()
    committed_offset: int64 = field()
    committed_leader_epoch: int32 = field("5-7", default=-1, ignorable=True)
    metadata: string | None = field()
    error_code: int16 = field()


class OffsetFetchResponseGroup(Struct):
    group_id: string = field()
    topics: list[OffsetFetchResponseTopics] = field()
    error_code: int16 = field()


class OffsetFetchResponseTopics(Struct):
    name: string = field("8-9", ignorable=True)
    topic_id: uuid = field("10+", ignorable=True)
    partitions: list[OffsetFetchResponsePartitions] = field()


class OffsetFetchResponsePartitions(Struct):
    partition_index: int32 = field()
    committed_offset: int64 = field()
    committed_leader_epoch: int32 = field(default=-1)
    metadata: string | None = field()
    error_code: int16 = field()


class OffsetDeleteRequest(Message, api_key=47, versions="0", flexible="none", listeners="broker"):
    group_id: string = field()
    topics: list[OffsetDeleteRequestTopic] = field()


class OffsetDeleteRequestTopic(Struct):
    name: string = field()
    partitions: list[OffsetDeleteRequestPartition] = field()


class OffsetDeleteRequestPartition(Struct):
    partition_index: int32 = field()


class OffsetDeleteResponse(Message, api_key=47, versions="0", flexible="none"):
    error_code: int16 = field()
    throttle_time_ms: int32 = field()
    topics: list[OffsetDeleteResponseTopic] = field()


class OffsetDeleteResponseTopic(Struct):
    name: string = field()
    partitions: list[OffsetDeleteResponsePartition] = field()


class OffsetDeleteResponsePartition(Struct):
    partition_index: int32 = field()
    error_code: int16 = field()
