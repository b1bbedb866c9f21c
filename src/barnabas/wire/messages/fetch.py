"""Fetch (key 1): read record batches from partitions, as a consumer, a follower or a raft observer.

v5 log start offset; v7 fetch sessions (KIP-227); v9 leader epochs; v10 zstd allowed; v11 rack and
preferred replica (KIP-392); v12 flexible, diverging epochs for raft; v13 topics by id; v15 replica
state; v16 the new leader in responses of a former one (KIP-951); v17 directory id of a voter; v18
the follower's high watermark (KIP-1166).
"""

from __future__ import annotations

from barnabas.wire.messages.leaders import LeaderIdAndEpoch, NodeEndpoint
from barnabas.wire.schema import (
    Message,
    Records,
    Struct,
    field,
    int8,
    int16,
    int32,
    int64,
    string,
    uuid,
)


class FetchRequest(
    Message, api_key=1, versions="4-18", flexible="12+", listeners="broker controller"
):
    cluster_id: string | None = field("12+", tag=0, default=None, ignorable=True)
    replica_id: int32 = field("0-14", default=-1)
    replica_state: ReplicaState = field("15+", tag=1)
    max_wait_ms: int32 = field()
    min_bytes: int32 = field()
    max_bytes: int32 = field(default=0x7FFFFFFF)
    isolation_level: int8 = field()
    session_id: int32 = field("7+", ignorable=True)
    session_epoch: int32 = field("7+", default=-1, ignorable=True)
    topics: list[FetchTopic] = field()
    forgotten_topics_data: list[ForgottenTopic] = field("7+")
    rack_id: string = field("11+", ignorable=True)


class ReplicaState(Struct):
    replica_id: int32 = field(default=-1)
    replica_epoch: int64 = field(default=-1)


class FetchTopic(Struct):
    topic: string = field("0-12", ignorable=True)
    topic_id: uuid = field("13+", ignorable=True)
    partitions: list[FetchPartition] = field()


class FetchPartition(Struct):
    partition: int32 = field()
    current_leader_epoch: int32 = field("9+", default=-1, ignorable=True)
    fetch_offset: int64 = field()
    last_fetched_epoch: int32 = field("12+", default=-1)
    log_start_offset: int64 = field("5+", default=-1, ignorable=True)
    partition_max_bytes: int32 = field()
    replica_directory_id: uuid = field("17+", tag=0, ignorable=True)
    high_watermark: int64 = field("18+", tag=1, default=2**63 - 1, ignorable=True)


class ForgottenTopic(Struct):
    topic: string = field("7-12", ignorable=True)
    topic_id: uuid = field("13+", ignorable=True)
    partitions: list[int32] = field()


class FetchResponse(Message, api_key=1, versions="4-18", flexible="12+"):
    throttle_time_ms: int32 = field()
    error_code: int16 = field("7+", ignorable=True)
    session_id: int32 = field("7+")
    responses: list[FetchableTopicResponse] = field()
    node_endpoints: list[NodeEndpoint] = field("16+", tag=0)


class FetchableTopicResponse(Struct):
    topic: string = field("0-12", ignorable=True)
    topic_id: uuid = field("13+", ignorable=True)
    partitions: list[PartitionData] = field()


class PartitionData(Struct):
    partition_index: int32 = field()
    error_code: int16 = field()
    high_watermark: int64 = field()
    last_stable_offset: int64 = field(default=-1)
    log_start_offset: int64 = field("5+", default=-1, ignorable=True)
    diverging_epoch: EpochEndOffset = field("12+", tag=0)
    current_leader: LeaderIdAndEpoch = field("12+", tag=1)
    snapshot_id: SnapshotId = field("12+", tag=2)
    aborted_transactions: list[AbortedTransaction] | None = field()
    preferred_read_replica: int32 = field("11+", default=-1)
    records: Records | None = field()


class EpochEndOffset(Struct):
    epoch: int32 = field(default=-1)
    end_offset: int64 = field(default=-1)


class SnapshotId(Struct):
    end_offset: int64 = field(default=-1)
    epoch: int32 = field(default=-1)


class AbortedTransaction(Struct):
    producer_id: int64 = field()
    first_offset: int64 = field()
