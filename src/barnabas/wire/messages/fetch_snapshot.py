"""FetchSnapshot (key 59): read a part of a metadata snapshot.

v1 directory ids and endpoints (KIP-853).
"""

from __future__ import annotations

from barnabas.wire.messages.raft_elections import NodeEndpoint
from barnabas.wire.schema import (
    Message,
    Records,
    Struct,
    field,
    int16,
    int32,
    int64,
    string,
    uuid,
)


class FetchSnapshotRequest(Message, api_key=59, versions="0-1", listeners="controller"):
    cluster_id: string | None = field(tag=0, default=None)
    replica_id: int32 = field(default=-1)
    max_bytes: int32 = field(default=0x7FFFFFFF)
    topics: list[RequestTopicSnapshot] = field()


class RequestTopicSnapshot(Struct):
    name: string = field()
    partitions: list[RequestPartitionSnapshot] = field()


class RequestPartitionSnapshot(Struct):
    partition: int32 = field()
    current_leader_epoch: int32 = field()
    snapshot_id: SnapshotId = field()
    position: int64 = field()
    replica_directory_id: uuid = field("1+", tag=0, ignorable=True)


class SnapshotId(Struct):
    end_offset: int64 = field()
    epoch: int32 = field()


class FetchSnapshotResponse(Message, api_key=59, versions="0-1"):
    throttle_time_ms: int32 = field()
    error_code: int16 = field()
    topics: list[ResponseTopicSnapshot] = field()
    node_endpoints: list[NodeEndpoint] = field("1+", tag=0)


class ResponseTopicSnapshot(Struct):
    name: string = field()
    partitions: list[ResponsePartitionSnapshot] = field()


class ResponsePartitionSnapshot(Struct):
    index: int32 = field()
    error_code: int16 = field()
    snapshot_id: SnapshotId = field()
    current_leader: LeaderIdAndEpoch = field(tag=0)
    size: int64 = field()
    position: int64 = field()
    unaligned_records: Records = field()


class LeaderIdAndEpoch(Struct):
    leader_id: int32 = field()
    leader_epoch: int32 = field()
