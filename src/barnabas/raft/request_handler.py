"""Answers what other members ask: Vote, BeginQuorumEpoch, EndQuorumEpoch, FetchSnapshot.

No request makes it raise: what cannot be answered has the protocol's error.
"""

import os

from barnabas.raft import election_codec
from barnabas.raft.addresses import QuorumLeader
from barnabas.raft.driver import RaftDriver
from barnabas.raft.election_codec import only_partition
from barnabas.raft.fetch_codec import snapshot_response
from barnabas.raft.messages import EpochResponse
from barnabas.raft.metadata_log import METADATA_TOPIC
from barnabas.raft.snapshots import SnapshotId
from barnabas.raft.voters import ReplicaKey, VoterEndpoint
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages import begin_quorum_epoch as begin
from barnabas.wire.messages import end_quorum_epoch as end
from barnabas.wire.messages import fetch_snapshot as wire_snapshot
from barnabas.wire.messages import vote as wire_vote

_FIRST_VERSION_WITH_ENDPOINTS = 1  # of all four
_MAX_PIECE_BYTES = 8 * 1024 * 1024
_BEGINNING = 0


class QuorumRequestHandler:
    """What this member tells those who ask."""

    __slots__ = ("_driver",)

    def __init__(self, driver: RaftDriver) -> None:
        self._driver = driver

    def vote(self, request: wire_vote.VoteRequest, api_version: int) -> wire_vote.VoteResponse:
        driver = self._driver
        refused = driver.cluster_error(request.cluster_id)
        asked = election_codec.read_vote_request(request)
        if refused is not ErrorCode.NONE or asked is None:
            return wire_vote.VoteResponse(error_code=refused or ErrorCode.INVALID_REQUEST)
        told = driver.raft.election.on_vote_request(asked, driver.now_ms)
        driver.step()
        if driver.failure is not None:
            # The vote is not on disk: it must not be told.
            return wire_vote.VoteResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR)
        return election_codec.vote_response(told, self._leader(api_version))

    def begin_epoch(
        self, request: begin.BeginQuorumEpochRequest, api_version: int
    ) -> begin.BeginQuorumEpochResponse:
        driver = self._driver
        refused = driver.cluster_error(request.cluster_id)
        begun = election_codec.read_begin_request(request)
        if refused is not ErrorCode.NONE or begun is None:
            return begin.BeginQuorumEpochResponse(error_code=refused or ErrorCode.INVALID_REQUEST)
        if begun.epoch >= driver.raft.epoch:
            self._learn(begun.leader_id, request.leader_endpoints)
        error = driver.raft.election.on_begin_epoch_request(begun, driver.now_ms)
        driver.step()
        return election_codec.begin_response(self._epoch_told(error), self._leader(api_version))

    def end_epoch(
        self, request: end.EndQuorumEpochRequest, api_version: int
    ) -> end.EndQuorumEpochResponse:
        driver = self._driver
        refused = driver.cluster_error(request.cluster_id)
        ended = election_codec.read_end_request(request)
        if refused is not ErrorCode.NONE or ended is None:
            return end.EndQuorumEpochResponse(error_code=refused or ErrorCode.INVALID_REQUEST)
        if ended.epoch >= driver.raft.epoch:
            self._learn(ended.leader_id, request.leader_endpoints)
        error = driver.raft.election.on_end_epoch_request(ended, driver.now_ms)
        driver.step()
        return election_codec.end_response(self._epoch_told(error), self._leader(api_version))

    def fetch_snapshot(
        self, request: wire_snapshot.FetchSnapshotRequest, api_version: int
    ) -> wire_snapshot.FetchSnapshotResponse:
        driver = self._driver
        refused = driver.cluster_error(request.cluster_id)
        found = only_partition(request.topics)
        if refused is not ErrorCode.NONE or found is None:
            error = refused or ErrorCode.INVALID_REQUEST
            return wire_snapshot.FetchSnapshotResponse(error_code=error)
        topic, asked = found
        if (topic.name, asked.partition) != (METADATA_TOPIC, 0):
            unknown = wire_snapshot.ResponsePartitionSnapshot(
                index=asked.partition, error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            )
            told = wire_snapshot.ResponseTopicSnapshot(name=topic.name, partitions=[unknown])
            return wire_snapshot.FetchSnapshotResponse(topics=[told])
        replica = ReplicaKey(request.replica_id, asked.replica_directory_id)
        error = driver.raft.leadership.on_fetch_snapshot_request(
            replica, asked.current_leader_epoch, driver.now_ms
        )
        driver.step()
        snapshot = SnapshotId(asked.snapshot_id.end_offset, asked.snapshot_id.epoch)
        return self._piece(error, snapshot, asked.position, request.max_bytes, api_version)

    def _piece(
        self,
        error: ErrorCode,
        snapshot: SnapshotId,
        position: int,
        max_bytes: int,
        api_version: int,
    ) -> wire_snapshot.FetchSnapshotResponse:
        raft = self._driver.raft
        size_bytes = 0
        piece = b""
        if error is ErrorCode.NONE:
            error, size_bytes, piece = self._read(snapshot, position, max_bytes)
        leader = self._leader(api_version)
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
            records=piece,
        )

    def _read(
        self, snapshot: SnapshotId, position: int, max_bytes: int
    ) -> tuple[ErrorCode, int, bytes]:
        """The size of a snapshot, and the piece of it at `position`."""
        log = self._driver.log
        if snapshot not in log.snapshots or snapshot.end_offset == _BEGINNING:
            # What formatting left is for the first leader alone, who writes it into the log.
            return ErrorCode.SNAPSHOT_NOT_FOUND, 0, b""
        try:
            with log.path_of(snapshot).open("rb") as file:
                size_bytes = os.fstat(file.fileno()).st_size
                if not 0 <= position < size_bytes:
                    return ErrorCode.POSITION_OUT_OF_RANGE, 0, b""
                wanted = min(max(max_bytes, 1), _MAX_PIECE_BYTES)
                return ErrorCode.NONE, size_bytes, os.pread(file.fileno(), wanted, position)
        except OSError as error:
            self._driver.fail(error)
            return ErrorCode.UNKNOWN_SERVER_ERROR, 0, b""

    def _learn(
        self, leader_id: int, endpoints: list[begin.LeaderEndpoint] | list[end.LeaderEndpoint]
    ) -> None:
        known = [VoterEndpoint(each.name, each.host, each.port) for each in endpoints]
        self._driver.addresses.learn_leader_endpoints(leader_id, known)

    def _epoch_told(self, error: ErrorCode) -> EpochResponse:
        return EpochResponse(error, self._driver.raft.leader_id, self._driver.raft.epoch)

    def _leader(self, api_version: int) -> QuorumLeader | None:
        """Whom a response names: before there was a place for it, nobody."""
        return self._driver.leader if api_version >= _FIRST_VERSION_WITH_ENDPOINTS else None
