"""The APIs that create and delete topics, partitions and records.

CreateTopics (key 19): create topics.
v4 partition count and replication factor -1 for the defaults; v5 flexible, the resulting
configs; v6 THROTTLING_QUOTA_EXCEEDED; v7 topic ids.

DeleteTopics (key 20): delete topics.
v4 flexible; v5 error messages, THROTTLING_QUOTA_EXCEEDED; v6 topics by id.

CreatePartitions (key 37): add partitions to topics.
v2 flexible; v3 THROTTLING_QUOTA_EXCEEDED.

DeleteRecords (key 21): delete records before an offset.
v2 flexible.
"""

from __future__ import annotations

from barnabas.wire.schema import Message, Struct, field, int8, int16, int32, int64, string, uuid


class CreateTopicsRequest(
    Message, api_key=19, versions="2-7", flexible="5+", listeners="broker controller"
):
    topics: list[CreatableTopic] = field()
    timeout_ms: int32 = field(default=60000)
    validate_only: bool = field()


class CreatableTopic(Struct):
    name: string = field()
    num_partitions: int32 = field()
    replication_factor: int16 = field()
    assignments: list[CreatableReplicaAssignment] = field()
    configs: list[CreatableTopicConfig] = field()


class CreatableReplicaAssignment(Struct):
    partition_index: int32 = field()
    broker_ids: list[int32] = field()


class CreatableTopicConfig(Struct):
    name: string = field()
    value: string | None = field()


class CreateTopicsResponse(Message, api_key=19, versions="2-7", flexible="5+"):
    throttle_time_ms: int32 = field()
    topics: list[CreatableTopicResult] = field()


class CreatableTopicResult(Struct):
    name: string = field()
    topic_id: uuid = field("7+", ignorable=True)
    error_code: int16 = field()
    error_message: string | None = field()
    topic_config_error_code: int16 = field("5+", tag=0, ignorable=True)
    num_partitions: int32 = field("5+", default=-1, ignorable=True)
    replication_factor: int16 = field("5+", default=-1, ignorable=True)
    configs: list[CreatableTopicConfigs] | None = field("5+", ignorable=True)


class CreatableTopicConfigs(Struct):
    name: string = field()
    value: string | None = field()
    read_only: bool = field()
    config_source: int8 = field(default=-1)
    is_sensitive: bool = field()


class DeleteTopicsRequest(
    Message, api_key=20, versions="1-6", flexible="4+", listeners="broker controller"
):
    topics: list[DeleteTopicState] = field("6+")
    topic_names: list[string] = field("0-5", ignorable=True)
    timeout_ms: int32 = field()


class DeleteTopicState(Struct):
    name: string | None = field(default=None)
    topic_id: uuid = field()


class DeleteTopicsResponse(Message, api_key=20, versions="1-6", flexible="4+"):
    throttle_time_ms: int32 = field()
    responses: list[DeletableTopicResult] = field()


class DeletableTopicResult(Struct):
    name: string | None = field(nullable="6+")
    topic_id: uuid = field("6+", ignorable=True)
    error_code: int16 = field()
    error_message: string | None = field("5+", default=None, ignorable=True)


class CreatePartitionsRequest(
    Message, api_key=37, versions="0-3", flexible="2+", listeners="broker controller"
):
    topics: list[CreatePartitionsTopic] = field()
    timeout_ms: int32 = field()
    validate_only: bool = field()


class CreatePartitionsTopic(Struct):
    name: string = field()
    count: int32 = field()
    assignments: list[CreatePartitionsAssignment] | None = field()


class CreatePartitionsAssignment(Struct):
    broker_ids: list[int32] = field()


class CreatePartitionsResponse(Message, api_key=37, versions="0-3", flexible="2+"):
    throttle_time_ms: int32 = field()
    results: list[CreatePartitionsTopicResult] = field()


class CreatePartitionsTopicResult(Struct):
    name: string = field()
    error_code: int16 = field()
    error_message: string | None = field(default=None)


class DeleteRecordsRequest(Message, api_key=21, versions="0-2", flexible="2+", listeners="broker"):
    topics: list[DeleteRecordsTopic] = field()
    timeout_ms: int32 = field()


class DeleteRecordsTopic(Struct):
    name: string = field()
    partitions: list[DeleteRecordsPartition] = field()


class DeleteRecordsPartition(Struct):
    partition_index: int32 = field()
    offset: int64 = field()


class DeleteRecordsResponse(Message, api_key=21, versions="0-2", flexible="2+"):
    throttle_time_ms: int32 = field()
    topics: list[DeleteRecordsTopicResult] = field()


class DeleteRecordsTopicResult(Struct):
    name: string = field()
    partitions: list[DeleteRecordsPartitionResult] = field()


class DeleteRecordsPartitionResult(Struct):
    partition_index: int32 = field()
    low_watermark: int64 = field()
    error_code: int16 = field()
