"""The APIs of partition reassignments.

AlterPartitionReassignments (key 45): reassign partitions, or cancel a reassignment.
v1 may reject a change of the replication factor (KIP-860).

ListPartitionReassignments (key 46): the ongoing reassignments.
"""

from __future__ import annotations

from barnabas.wire.schema import Message, Struct, field, int16, int32, string


class AlterPartitionReassignmentsRequest(
    Message, api_key=45, versions="0-1", listeners="broker controller"
):
    timeout_ms: int32 = field(default=60000)
    allow_replication_factor_change: bool = field("1+", default=True)
    topics: list[ReassignableTopic] = field()


class ReassignableTopic(Struct):
    name: string = field()
    partitions: list[ReassignablePartition] = field()


class ReassignablePartition(Struct):
    partition_index: int32 = field()
    replicas: list[int32] | None = field(default=None)


class AlterPartitionReassignmentsResponse(Message, api_key=45, versions="0-1"):
    throttle_time_ms: int32 = field()
    allow_replication_factor_change: bool = field("1+", default=True, ignorable=True)
    error_code: int16 = field()
    error_message: string | None = field()
    responses: list[ReassignableTopicResponse] = field()


class ReassignableTopicResponse(Struct):
    name: string = field()
    partitions: list[ReassignablePartitionResponse] = field()


class ReassignablePartitionResponse(Struct):
    partition_index: int32 = field()
    error_code: int16 = field()
    error_message: string | None = field()


class ListPartitionReassignmentsRequest(
    Message, api_key=46, versions="0", listeners="broker controller"
):
    timeout_ms: int32 = field(default=60000)
    topics: list[ListPartitionReassignmentsTopics] | None = field(default=None)


class ListPartitionReassignmentsTopics(Struct):
    name: string = field()
    partition_indexes: list[int32] = field()


class ListPartitionReassignmentsResponse(Message, api_key=46, versions="0"):
    throttle_time_ms: int32 = field()
    error_code: int16 = field()
    error_message: string | None = field()
    topics: list[OngoingTopicReassignment] = field()


class OngoingTopicReassignment(Struct):
    name: string = field()
    partitions: list[OngoingPartitionReassignment] = field()


class OngoingPartitionReassignment(Struct):
    partition_index: int32 = field()
    replicas: list[int32] = field()
    adding_replicas: list[int32] = field()
    removing_replicas: list[int32] = field()
