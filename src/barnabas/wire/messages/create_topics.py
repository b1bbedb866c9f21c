"""CreateTopics (key 19): create topics.

v4 partition count and replication factor -1 for the defaults; v5 flexible, the configs that came
out; v6 THROTTLING_QUOTA_EXCEEDED; v7 topic ids.
"""

from __future__ import annotations

from barnabas.wire.schema import Message, Struct, field, int8, int16, int32, string, uuid


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
