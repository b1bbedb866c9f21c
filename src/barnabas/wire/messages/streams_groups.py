"""The APIs of streams groups.

StreamsGroupHeartbeat (key 88): a member of a streams group gets its tasks (KIP-1071).
v1 the recovery lag as int64, and requests for a description of the topology.

StreamsGroupDescribe (key 89): state, topology and members of streams groups (KIP-1071).
v1 a description of the topology, and the assignor.

StreamsGroupTopologyDescriptionUpdate (key 93): the topology of a streams group.
"""

from __future__ import annotations

from barnabas.wire.schema import Message, Struct, field, int8, int16, int32, int64, string, uint16


class StreamsGroupHeartbeatRequest(Message, api_key=88, versions="0-1", listeners="broker"):
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


class StreamsGroupHeartbeatResponse(Message, api_key=88, versions="0-1"):
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


class StreamsGroupDescribeRequest(Message, api_key=89, versions="0-1", listeners="broker"):
    group_ids: list[string] = field()
    include_authorized_operations: bool = field()
    include_topology_description: bool = field("1+")


class StreamsGroupDescribeResponse(Message, api_key=89, versions="0-1"):
    throttle_time_ms: int32 = field()
    groups: list[DescribedGroup] = field()


class DescribedGroup(Struct):
    error_code: int16 = field()
    error_message: string | None = field(default=None)
    group_id: string = field()
    group_state: string = field()
    group_epoch: int32 = field()
    assignment_epoch: int32 = field()
    topology: DescribedTopology | None = field(default=None)
    members: list[Member] = field()
    authorized_operations: int32 = field(default=-(2**31))
    topology_description: TopologyDescription | None = field("1+", default=None)
    topology_description_status: int8 = field("1+")
    assignor_name: string | None = field("1+", default=None, ignorable=True)


class DescribedTopology(Struct):
    epoch: int32 = field()
    subtopologies: list[DescribedSubtopology] | None = field(default=None)


class DescribedSubtopology(Struct):
    subtopology_id: string = field()
    source_topics: list[string] = field()
    repartition_sink_topics: list[string] = field()
    state_changelog_topics: list[TopicInfo] = field()
    repartition_source_topics: list[TopicInfo] = field()


class Member(Struct):
    member_id: string = field()
    member_epoch: int32 = field()
    instance_id: string | None = field(default=None)
    rack_id: string | None = field(default=None)
    client_id: string = field()
    client_host: string = field()
    topology_epoch: int32 = field()
    process_id: string = field()
    user_endpoint: Endpoint | None = field(default=None)
    client_tags: list[KeyValue] = field()
    task_offsets: list[TaskOffset] = field()
    task_end_offsets: list[TaskOffset] = field()
    assignment: Assignment = field()
    target_assignment: Assignment = field()
    is_classic: bool = field()


class Assignment(Struct):
    active_tasks: list[TaskIds] = field()
    standby_tasks: list[TaskIds] = field()
    warmup_tasks: list[TaskIds] = field()


class TopologyDescription(Struct):
    subtopologies: list[TopologyDescriptionSubtopology] = field()
    global_stores: list[TopologyDescriptionGlobalStore] = field()


class TopologyDescriptionSubtopology(Struct):
    subtopology_id: string = field()
    nodes: list[TopologyDescriptionNode] = field()


class TopologyDescriptionNode(Struct):
    name: string = field()
    node_type: int8 = field()
    source_topics: list[string] = field()
    sink_topic: string | None = field(default=None)
    stores: list[string] = field()
    successors: list[string] = field()


class TopologyDescriptionGlobalStore(Struct):
    source: TopologyDescriptionNode = field()
    processor: TopologyDescriptionNode = field()


class StreamsGroupTopologyDescriptionUpdateRequest(
    Message, api_key=93, versions="0", listeners="broker"
):
    group_id: string = field()
    member_id: string = field()
    topology_epoch: int32 = field()
    topology_description: TopologyDescription = field()


class StreamsGroupTopologyDescriptionUpdateResponse(Message, api_key=93, versions="0"):
    throttle_time_ms: int32 = field()
    error_code: int16 = field()
    error_message: string | None = field(default=None)
