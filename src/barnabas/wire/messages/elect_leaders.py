"""ElectLeaders (key 43): elect the preferred leader, or an unclean one.

v1 the kind of election; v2 flexible.
"""

from __future__ import annotations

from barnabas.wire.schema import Message, Struct, field, int8, int16, int32, string


class ElectLeadersRequest(
    Message, api_key=43, versions="0-2", flexible="2+", listeners="broker controller"
):
    election_type: int8 = field("1+")
    topic_partitions: list[TopicPartitions] | None = field()
    timeout_ms: int32 = field(default=60000)


class TopicPartitions(Struct):
    topic: string = field()
    partitions: list[int32] = field()


class ElectLeadersResponse(Message, api_key=43, versions="0-2", flexible="2+"):
    throttle_time_ms: int32 = field()
    error_code: int16 = field("1+")
    replica_election_results: list[ReplicaElectionResult] = field()


class ReplicaElectionResult(Struct):
    topic: string = field()
    partition_result: list[PartitionResult] = field()


class PartitionResult(Struct):
    partition_id: int32 = field()
    error_code: int16 = field()
    error_message: string | None = field()
