"""Handles Vote, BeginQuorumEpoch, EndQuorumEpoch and FetchSnapshot of other nodes.

No request makes it raise: a failure is reported with the protocol's error code.
"""

import os

from barnabas.raft import election_codec
from barnabas.raft.addresses import QuorumLeader, RequestOrigin
from barnabas.raft.driver import RaftDriver
from barnabas.raft.election_codec import only_partition
from barnabas.raft.fetch_codec import snapshot_response
from barnabas.raft.messages import EpochResponse
from barnabas.raft.snapshots import METADATA_TOPIC, SnapshotId
from barnabas.raft.voters import ReplicaKey, VoterEndpoint
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages import fetch_snapshot as wire_snapshot
from barnabas.wire.messages.raft_elections import (
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
    LeaderEndpoint,
    VoteRequest,
    VoteResponse,
)

_FIRST_VERSION_WITH_ENDPOINTS = 1  # of all four APIs
_MAX_CHUNK_BYTES = 8 * 1024 * 1024
_LOG_START = 0


class QuorumRequestHandler:
    """Passes requests to the consensus, and responds when its effects are performed."""

    __slots__ = ("_driver",)

    def __init__(self, driver: RaftDriver) -> None:
        self._driver = driver

    def vote(self, request: VoteRequest, origin: RequestOrigin) -> VoteResponse:
        driver = self._driver
        cluster_error = driver.cluster_error(request.cluster_id)
        vote = election_codec.parse_vote_request(request)
        if cluster_error is not ErrorCode.NONE or vote is None:
            return VoteResponse(error_code=cluster_error or ErrorCode.INVALID_REQUEST)
        response = driver.raft.election.on_vote_request(vote, driver.now_ms)
        driver.step()
        if driver.failure is not None:
            # The vote is not on disk, so it must not be sent.
            return VoteResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR)
        return election_codec.vote_response(response, self._leader(origin))

    def begin_epoch(
        self, request: BeginQuorumEpochRequest, origin: RequestOrigin
    ) -> BeginQuorumEpochResponse:
        driver = self._driver
        cluster_error = driver.cluster_error(request.cluster_id)
        parsed = election_codec.parse_begin_request(request)
        if cluster_error is not ErrorCode.NONE or parsed is None:
            return BeginQuorumEpochResponse(error_code=cluster_error or ErrorCode.INVALID_REQUEST)
        if parsed.epoch >= driver.raft.epoch:
            self._learn_leader(parsed.leader_id, request.leader_endpoints)
        error = driver.raft.election.on_begin_epoch_request(parsed, driver.now_ms)
        driver.step()
        return election_codec.begin_response(self._epoch_response(error), self._leader(origin))

    def end_epoch(
        self, request: EndQuorumEpochRequest, origin: RequestOrigin
    ) -> EndQuorumEpochResponse:
        driver = self._driver
        cluster_error = driver.cluster_error(request.cluster_id)
        parsed = election_codec.parse_end_request(request)
        if cluster_error is not ErrorCode.NONE or parsed is None:
            return EndQuorumEpochResponse(error_code=cluster_error or ErrorCode.INVALID_REQUEST)
        if parsed.epoch >= driver.raft.epoch:
            self._learn_leader(parsed.leader_id, request.leader_endpoints)
        error = driver.raft.election.on_end_epoch_request(parsed, driver.now_ms)
        driver.step()
        return election_codec.end_response(self._epoch_response(error), self._leader(origin))

    def fetch_snapshot(
        self, request: wire_snapshot.FetchSnapshotRequest, origin: RequestOrigin
    ) -> wire_snapshot.FetchSnapshotResponse:
        driver = self._driver
        cluster_error = driver.cluster_error(request.cluster_id)
        topic_and_partition = only_partition(request.topics)
        if cluster_error is not ErrorCode.NONE or topic_and_partition is None:
            error = cluster_error or ErrorCode.INVALID_REQUEST
            return wire_snapshot.FetchSnapshotResponse(error_code=error)
        topic, partition = topic_and_partition
        if (topic.name, partition.partition) != (METADATA_TOPIC, 0):
            unknown = wire_snapshot.ResponsePartitionSnapshot(
                index=partition.partition, error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            )
            response_topic = wire_snapshot.ResponseTopicSnapshot(
                name=topic.name, partitions=[unknown]
            )
            return wire_snapshot.FetchSnapshotResponse(topics=[response_topic])
        replica = ReplicaKey(request.replica_id, partition.replica_directory_id)
        error = driver.raft.leadership.on_fetch_snapshot_request(
            replica, partition.current_leader_epoch, driver.now_ms
        )
        driver.step()
        snapshot = SnapshotId(partition.snapshot_id.end_offset, partition.snapshot_id.epoch)
        return self._chunk_response(error, snapshot, partition.position, request.max_bytes, origin)

    def _chunk_response(
        self,
        error: ErrorCode,
        snapshot: SnapshotId,
        position: int,
        max_bytes: int,
        origin: RequestOrigin,
    ) -> wire_snapshot.FetchSnapshotResponse:
        raft = self._driver.raft
        size_bytes = 0
        chunk = b""
        if error is ErrorCode.NONE:
            error, size_bytes, chunk = self._read(snapshot, position, max_bytes)
        leader = self._leader(origin)
        if error is not ErrorCode.NONE:
            return snapshot_response(error, raft.leader_id, raft.epoch, leader)
        return snapshot_response(
            error,
            raft.leader_id,
            raft.epoch,
            leader,
            snapshot=snapshot,
            size_bytes=size_bytes,
            position=position,
            records=chunk,
        )

    def _read(
        self, snapshot: SnapshotId, position: int, max_bytes: int
    ) -> tuple[ErrorCode, int, bytes]:
        """Returns the error, the size of the snapshot, and its bytes at `position`."""
        log = self._driver.log
        if snapshot not in log.snapshots or snapshot.end_offset == _LOG_START:
            # The first leader writes the snapshot of formatting into the log: no follower needs it.
            return ErrorCode.SNAPSHOT_NOT_FOUND, 0, b""
        try:
            with log.path_of(snapshot).open("rb") as file:
                size_bytes = os.fstat(file.fileno()).st_size
                if not 0 <= position < size_bytes:
                    return ErrorCode.POSITION_OUT_OF_RANGE, 0, b""
                size_limit = min(max(max_bytes, 1), _MAX_CHUNK_BYTES)
                return ErrorCode.NONE, size_bytes, os.pread(file.fileno(), size_limit, position)
        except OSError as error:
            self._driver.fail(error)
            return ErrorCode.UNKNOWN_SERVER_ERROR, 0, b""

    def _learn_leader(
        self, leader_id: int, endpoints: list[LeaderEndpoint] | list[LeaderEndpoint]
    ) -> None:
        voter_endpoints = [VoterEndpoint(e.name, e.host, e.port) for e in endpoints]
        self._driver.addresses.learn_leader_endpoints(leader_id, voter_endpoints)

    def _epoch_response(self, error: ErrorCode) -> EpochResponse:
        return EpochResponse(error, self._driver.raft.leader_id, self._driver.raft.epoch)

    def _leader(self, origin: RequestOrigin) -> QuorumLeader | None:
        """Returns the leader to report; None in versions that have no field for it."""
        if origin.api_version < _FIRST_VERSION_WITH_ENDPOINTS:
            return None
        return self._driver.leader_at(origin.listener)
