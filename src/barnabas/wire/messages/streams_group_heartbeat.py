"""StreamsGroupHeartbeat (key 88): a streams group's member learns its tasks (KIP-1071).

v1 the recovery lag as int64, and asking for a description of the topology.
"""

from __future__ import annotations

from barnabas.wire.schema import Message, Struct, field, int8, int16, int32, int64, string, uint16


class StreamsGroupHeartbeatRequest(
    Message, api_key=88, versions="0-1", flexible="0+", listeners="broker"
):
    group_id: string = field()
    member_id: string = field()
    member_epoch: int32 = field()
    endpoint_information_epoch: int32 = field()
    instance_id: string | None = field(default=None)
    rack_id: string | None = field(default=None)
    rebalance_timeout_ms: int32 = field(default=-1)
    topology: Topology | None = field(default=None)
    active_tasks: list[TaskIds] | None = field(default=None)
    standby_tasks: list[TaskIds] | None = field(default=None)
    warmup_tasks: list[TaskIds] | None = field(default=None)
    process_id: string | None = field(default=None)
    user_endpoint: Endpoint | None = field(default=None)
    client_tags: list[KeyValue] | None = field(default=None)
    task_offsets: list[TaskOffset] | None = field(default=None)
    task_end_offsets: list[TaskOffset] | None = field(default=None)
    shutdown_application: bool = field()


class Topology(Struct):
    epoch: int32 = field()
    subtopologies: list[Subtopology] = field()


class Subtopology(Struct):
    subtopology_id: string = field()
    source_topics: list[string] = field()
    source_topic_regex: list[string] = field()
    state_changelog_topics: list[TopicInfo] = field()
    repartition_sink_topics: list[string] = field()
    repartition_source_topics: list[TopicInfo] = field()
    copartition_groups: list[CopartitionGroup] = field()


class TopicInfo(Struct):
    name: string = field()
    partitions: int32 = field()
    replication_factor: int16 = field()
    topic_configs: list[KeyValue] = field()


class KeyValue(Struct):
    key: string = field()
    value: string = field()


class CopartitionGroup(Struct):
    source_topics: list[int16] = field()
    source_topic_regex: list[int16] = field()
    repartition_source_topics: list[int16] = field()


class TaskIds(Struct):
    subtopology_id: string = field()
    partitions: list[int32] = field()


class Endpoint(Struct):
    host: string = field()
    port: uint16 = field()


class TaskOffset(Struct):
    subtopology_id: string = field()
    partition: int32 = field()
    offset: int64 = field()


class StreamsGroupHeartbeatResponse(Message, api_key=88, versions="0-1", flexible="0+"):
    throttle_time_ms: int32 = field()
    error_code: int16 = field()
    error_message: string | None = field(default=None)
    member_id: string = field()
    member_epoch: int32 = field()
    heartbeat_interval_ms: int32 = field()
    acceptable_recovery_lag_legacy: int32 = field("0")
    task_offset_interval_ms: int32 = field()
    acceptable_recovery_lag: int64 = field("1+", default=-1, ignorable=True)
    status: list[Status] | None = field()
    active_tasks: list[TaskIds] | None = field(default=None)
    standby_tasks: list[TaskIds] | None = field(default=None)
    warmup_tasks: list[TaskIds] | None = field(default=None)
    topology_description_required: bool = field("1+")
    endpoint_information_epoch: int32 = field()
    partitions_by_user_endpoint: list[EndpointToPartitions] | None = field(default=None)


class Status(Struct):
    status_code: int8 = field()
    status_detail: string = field()


class EndpointToPartitions(Struct):
    user_endpoint: Endpoint = field()
    active_partitions: list[TopicPartition] = field()
    standby_partitions: list[TopicPartition] = field()


class TopicPartition(Struct):
    topic: string = field()
    partitions: list[int32] = field()
