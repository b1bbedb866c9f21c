"""Converts Fetch and FetchSnapshot of the metadata log between the consensus and the wire."""

from dataclasses import dataclass

from barnabas.log import EpochEndOffset
from barnabas.raft.addresses import ControllerAddress, QuorumLeader
from barnabas.raft.election_codec import leader_address, node_endpoints, only_partition
from barnabas.raft.messages import FetchOutcome
from barnabas.raft.roles import NO_NODE
from barnabas.raft.snapshots import METADATA_TOPIC, SnapshotId
from barnabas.raft.voters import ReplicaKey
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages import fetch, fetch_snapshot, leaders, raft_elections
from barnabas.wire.messages.fetch import FetchRequest, FetchResponse
from barnabas.wire.messages.fetch_snapshot import FetchSnapshotRequest, FetchSnapshotResponse
from barnabas.wire.outgoing import Records
from barnabas.wire.uuid import METADATA_TOPIC_ID

_NO_HIGH_WATERMARK = 2**63 - 1  # the fetcher's high watermark before Fetch v18


@dataclass(slots=True, frozen=True)
class RaftFetchRequest:
    """A fetch of a replica."""

    replica: ReplicaKey
    epoch: int
    offset: int
    last_fetched_epoch: int
    high_watermark: int | None = None  # the fetcher's; None before Fetch v18 (KIP-1166)
    max_wait_ms: int = 0
    max_bytes: int = 0


@dataclass(slots=True, frozen=True)
class RaftFetchResponse:
    """The response of the leader, or of another node that reports the leader."""

    error: ErrorCode
    leader_id: int
    epoch: int
    leader_address: ControllerAddress | None
    high_watermark: int
    diverging: EpochEndOffset | None
    snapshot: SnapshotId | None
    records: memoryview


@dataclass(slots=True, frozen=True)
class SnapshotChunk:
    """A part of a snapshot, from `position`."""

    error: ErrorCode
    leader_id: int
    epoch: int
    leader_address: ControllerAddress | None
    snapshot: SnapshotId
    size_bytes: int
    position: int
    records: memoryview


# Fetch


def fetch_request(cluster_id: str, request: RaftFetchRequest) -> FetchRequest:
    replica = request.replica
    partition = fetch.FetchPartition(
        current_leader_epoch=request.epoch,
        fetch_offset=request.offset,
        last_fetched_epoch=request.last_fetched_epoch,
        partition_max_bytes=request.max_bytes,
        replica_directory_id=replica.directory_id,
        high_watermark=_NO_HIGH_WATERMARK
        if request.high_watermark is None
        else request.high_watermark,
    )
    return FetchRequest(
        cluster_id=cluster_id,
        replica_state=fetch.ReplicaState(replica_id=replica.node_id),
        max_wait_ms=request.max_wait_ms,
        max_bytes=request.max_bytes,
        topics=[
            fetch.FetchTopic(
                topic=METADATA_TOPIC, topic_id=METADATA_TOPIC_ID, partitions=[partition]
            )
        ],
    )


def parse_fetch_request(request: FetchRequest) -> RaftFetchRequest | None:
    topic_and_partition = only_partition(request.topics)
    if topic_and_partition is None:
        return None
    topic, partition = topic_and_partition
    if partition.partition != 0 or not _is_metadata(topic):
        return None
    node_id = request.replica_state.replica_id
    return RaftFetchRequest(
        replica=ReplicaKey(
            request.replica_id if node_id == NO_NODE else node_id, partition.replica_directory_id
        ),
        epoch=partition.current_leader_epoch,
        offset=partition.fetch_offset,
        last_fetched_epoch=partition.last_fetched_epoch,
        high_watermark=None
        if partition.high_watermark == _NO_HIGH_WATERMARK
        else partition.high_watermark,
        max_wait_ms=request.max_wait_ms,
        max_bytes=request.max_bytes,
    )


def fetch_response(
    outcome: FetchOutcome,
    leader_id: int,
    epoch: int,
    leader: QuorumLeader | None,
    *,
    start_offset: int,
    high_watermark: int = -1,
    records: Records = b"",
) -> FetchResponse:
    partition = fetch.PartitionData(
        error_code=outcome.error,
        high_watermark=high_watermark,
        log_start_offset=start_offset,
        current_leader=leaders.LeaderIdAndEpoch(leader_id=leader_id, leader_epoch=epoch),
        records=records,
    )
    if outcome.diverging is not None:
        partition.diverging_epoch = fetch.EpochEndOffset(
            epoch=outcome.diverging.epoch, end_offset=outcome.diverging.end_offset
        )
    if outcome.snapshot is not None:
        partition.snapshot_id = fetch.SnapshotId(
            end_offset=outcome.snapshot.end_offset, epoch=outcome.snapshot.epoch
        )
    return FetchResponse(
        responses=[
            fetch.FetchableTopicResponse(
                topic=METADATA_TOPIC, topic_id=METADATA_TOPIC_ID, partitions=[partition]
            )
        ],
        node_endpoints=node_endpoints(leaders.NodeEndpoint, leader),
    )


def parse_fetch_response(response: FetchResponse) -> RaftFetchResponse | None:
    topic_and_partition = only_partition(response.responses)
    if topic_and_partition is None or response.error_code:
        return None
    topic, partition = topic_and_partition
    if partition.partition_index != 0 or not _is_metadata(topic):
        return None
    leader = partition.current_leader
    diverging, snapshot = partition.diverging_epoch, partition.snapshot_id
    return RaftFetchResponse(
        error=ErrorCode.of(partition.error_code),
        leader_id=leader.leader_id,
        epoch=leader.leader_epoch,
        leader_address=leader_address(response, leader.leader_id),
        high_watermark=partition.high_watermark,
        diverging=EpochEndOffset(diverging.epoch, diverging.end_offset)
        if diverging.epoch >= 0
        else None,
        snapshot=(
            SnapshotId(snapshot.end_offset, snapshot.epoch)
            if snapshot.epoch >= 0 and snapshot.end_offset >= 0
            else None
        ),
        records=memoryview(partition.records or b""),
    )


def _is_metadata(topic: fetch.FetchTopic | fetch.FetchableTopicResponse) -> bool:
    """Topics have ids from v13 on, and names before."""
    return topic.topic_id == METADATA_TOPIC_ID or topic.topic == METADATA_TOPIC


# FetchSnapshot


def snapshot_request(
    cluster_id: str,
    replica: ReplicaKey,
    epoch: int,
    snapshot: SnapshotId,
    position: int,
    max_bytes: int,
) -> FetchSnapshotRequest:
    partition = fetch_snapshot.RequestPartitionSnapshot(
        current_leader_epoch=epoch,
        snapshot_id=_wire_id(snapshot),
        position=position,
        replica_directory_id=replica.directory_id,
    )
    topic = fetch_snapshot.RequestTopicSnapshot(name=METADATA_TOPIC, partitions=[partition])
    return FetchSnapshotRequest(
        cluster_id=cluster_id, replica_id=replica.node_id, max_bytes=max_bytes, topics=[topic]
    )


def snapshot_response(
    error: ErrorCode,
    leader_id: int,
    epoch: int,
    leader: QuorumLeader | None,
    *,
    snapshot: SnapshotId | None = None,
    size_bytes: int = 0,
    position: int = 0,
    records: bytes = b"",
) -> FetchSnapshotResponse:
    partition = fetch_snapshot.ResponsePartitionSnapshot(
        error_code=error,
        snapshot_id=_wire_id(snapshot or SnapshotId(0, 0)),
        current_leader=fetch_snapshot.LeaderIdAndEpoch(leader_id=leader_id, leader_epoch=epoch),
        size=size_bytes,
        position=position,
        unaligned_records=records,
    )
    topic = fetch_snapshot.ResponseTopicSnapshot(name=METADATA_TOPIC, partitions=[partition])
    nodes = node_endpoints(raft_elections.NodeEndpoint, leader)
    return FetchSnapshotResponse(topics=[topic], node_endpoints=nodes)


def parse_snapshot_response(response: FetchSnapshotResponse) -> SnapshotChunk | None:
    topic_and_partition = only_partition(response.topics)
    if topic_and_partition is None or response.error_code:
        return None
    topic, partition = topic_and_partition
    if (topic.name, partition.index) != (METADATA_TOPIC, 0):
        return None
    leader = partition.current_leader
    return SnapshotChunk(
        error=ErrorCode.of(partition.error_code),
        leader_id=leader.leader_id,
        epoch=leader.leader_epoch,
        leader_address=leader_address(response, leader.leader_id),
        snapshot=SnapshotId(partition.snapshot_id.end_offset, partition.snapshot_id.epoch),
        size_bytes=partition.size,
        position=partition.position,
        records=memoryview(partition.unaligned_records),
    )


def _wire_id(snapshot: SnapshotId) -> fetch_snapshot.SnapshotId:
    return fetch_snapshot.SnapshotId(end_offset=snapshot.end_offset, epoch=snapshot.epoch)
