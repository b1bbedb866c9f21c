"""Records of `__consumer_offsets` for streams groups: members, topologies and assignments.

`api_key` is the record's type: the int16 before a key, which pairs it with the value. The structs
named TaskIds in Kafka are `TargetTaskIds` and `CurrentTaskIds` here.
"""

from __future__ import annotations

from barnabas.wire.messages.streams_groups import CopartitionGroup, Endpoint, KeyValue
from barnabas.wire.schema import Message, Struct, field, int8, int16, int32, int64, string


class StreamsGroupMetadataKey(Message, api_key=17, versions="0", flexible="none"):
    group_id: string = field()


class StreamsGroupMetadataValue(Message, api_key=17, versions="0"):
    epoch: int32 = field()
    metadata_hash: int64 = field()
    validated_topology_epoch: int32 = field(tag=0, default=-1)
    last_assignment_configs: list[LastAssignmentConfig] | None = field(tag=1)


class LastAssignmentConfig(Struct):
    key: string = field()
    value: string = field()


class StreamsGroupMemberMetadataKey(Message, api_key=19, versions="0", flexible="none"):
    group_id: string = field()
    member_id: string = field()


class StreamsGroupMemberMetadataValue(Message, api_key=19, versions="0"):
    instance_id: string | None = field()
    rack_id: string | None = field()
    client_id: string = field()
    client_host: string = field()
    rebalance_timeout_ms: int32 = field(default=-1)
    topology_epoch: int32 = field()
    process_id: string = field()
    user_endpoint: Endpoint | None = field(default=None)
    client_tags: list[KeyValue] = field()


class StreamsGroupTargetAssignmentMetadataKey(Message, api_key=20, versions="0", flexible="none"):
    group_id: string = field()


class StreamsGroupTargetAssignmentMetadataValue(Message, api_key=20, versions="0"):
    assignment_epoch: int32 = field()
    assignment_timestamp: int64 = field(tag=0)


class StreamsGroupTargetAssignmentMemberKey(Message, api_key=21, versions="0", flexible="none"):
    group_id: string = field()
    member_id: string = field()


class StreamsGroupTargetAssignmentMemberValue(Message, api_key=21, versions="0"):
    active_tasks: list[TargetTaskIds] = field()
    standby_tasks: list[TargetTaskIds] = field()
    warmup_tasks: list[TargetTaskIds] = field()


class TargetTaskIds(Struct):
    subtopology_id: string = field()
    partitions: list[int32] = field()


class StreamsGroupCurrentMemberAssignmentKey(Message, api_key=22, versions="0", flexible="none"):
    group_id: string = field()
    member_id: string = field()


class StreamsGroupCurrentMemberAssignmentValue(Message, api_key=22, versions="0"):
    member_epoch: int32 = field()
    previous_member_epoch: int32 = field()
    state: int8 = field()
    active_tasks: list[CurrentTaskIds] = field()
    standby_tasks: list[CurrentTaskIds] = field()
    warmup_tasks: list[CurrentTaskIds] = field()
    active_tasks_pending_revocation: list[CurrentTaskIds] = field()
    standby_tasks_pending_revocation: list[CurrentTaskIds] = field()
    warmup_tasks_pending_revocation: list[CurrentTaskIds] = field()


class CurrentTaskIds(Struct):
    subtopology_id: string = field()
    partitions: list[int32] = field()
    assignment_epochs: list[int32] | None = field(tag=0)


class StreamsGroupTopologyKey(Message, api_key=23, versions="0", flexible="none"):
    group_id: string = field()


class StreamsGroupTopologyValue(Message, api_key=23, versions="0"):
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
    topic_configs: list[TopicConfig] = field()


class TopicConfig(Struct):
    key: string = field()
    value: string = field()
