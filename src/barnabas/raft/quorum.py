"""This node's replica of the metadata log, and the workers that keep it in the quorum.

The order of calls: `start`, then requests of other nodes and appends of this one, `stop`.
Everything runs on the loop, except syncing to disk.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from random import Random

from barnabas.log import LogDirectory
from barnabas.log.flush import BackgroundExecutor
from barnabas.raft.addresses import (
    ControllerAddresses,
    PeerFailures,
    QuorumLeader,
    RequestOrigin,
)
from barnabas.raft.commit_publisher import CommitPublisher, QuorumListener
from barnabas.raft.driver import RaftDriver
from barnabas.raft.election_sender import ElectionSender
from barnabas.raft.fetch_handler import MetadataFetchHandler
from barnabas.raft.log_fetcher import MetadataLogFetcher
from barnabas.raft.log_flusher import MetadataLogFlusher
from barnabas.raft.membership import VoterMembership
from barnabas.raft.metadata_log import MetadataLog
from barnabas.raft.quorum_config import QuorumConfig
from barnabas.raft.quorum_description import QuorumDescription, describe
from barnabas.raft.quorum_state import read_state
from barnabas.raft.raft_node import RaftNode, RaftTimeouts
from barnabas.raft.request_handler import QuorumRequestHandler
from barnabas.raft.roles import Follower, Leader, Resigned
from barnabas.raft.snapshots import SnapshotId, SnapshotWriter
from barnabas.raft.voter_changes import VoterChanges
from barnabas.raft.voters import QuorumError, VoterNode, VoterSet
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.fetch import FetchRequest
from barnabas.wire.messages.fetch_snapshot import FetchSnapshotRequest
from barnabas.wire.messages.raft_elections import (
    BeginQuorumEpochRequest,
    EndQuorumEpochRequest,
    VoteRequest,
)
from barnabas.wire.messages.raft_voters import (
    AddRaftVoterRequest,
    RemoveRaftVoterRequest,
    UpdateRaftVoterRequest,
)
from barnabas.wire.peer import Peers
from barnabas.wire.records.build import Record, build_batch
from barnabas.wire.schema import Message

_logger = logging.getLogger(__name__)

QuorumRequest = (
    FetchRequest
    | FetchSnapshotRequest
    | VoteRequest
    | BeginQuorumEpochRequest
    | EndQuorumEpochRequest
    | AddRaftVoterRequest
    | RemoveRaftVoterRequest
    | UpdateRaftVoterRequest
)
"""Requests between the nodes of the quorum, and changes of its voters."""

_RESIGNATION_WAIT_MS = 500
"""How long a leader that stops waits for the other voters to acknowledge its resignation."""


class Quorum:
    """A voter or an observer of the metadata log."""

    def __init__(
        self,
        directory: LogDirectory,
        node: VoterNode,
        *,
        static_voters: VoterSet | None = None,
        bootstrap: Sequence[tuple[str, int]] = (),
        config: QuorumConfig | None = None,
        is_controller: bool,
        peers: Peers,
        background: BackgroundExecutor,
        clock: Callable[[], int],
        random: Random,
    ) -> None:
        """Opens the metadata log in a formatted directory, or creates it."""
        self._config = config or QuorumConfig()
        self._log = MetadataLog.open(directory, self._config, static_voters)
        self._node = node
        self._cluster_id = directory.meta.cluster_id
        self._bootstrap = bootstrap
        self._is_controller = is_controller
        self._peers = peers
        self._background = background
        self._clock = clock
        self._random = random
        self.is_new = self._log.end_offset == 0
        """Whether the log was empty when it was opened: no controller has written to it."""

    def start(self, listener: QuorumListener) -> None:
        """Passes to `listener` what is known to be committed, and joins the quorum.

        A sole voter leads when this returns, and its whole log is committed. Blocks.
        """
        log = self._log
        voters = log.history.voters
        self._check(voters)
        log.flush()  # other nodes rely on what this node reports to have
        addresses = ControllerAddresses(self._bootstrap, voters, self._config.listener_name)
        config = self._config
        driver = self._driver = RaftDriver(
            self._node, self._cluster_id, log, addresses, config, self._clock, listener.on_failure
        )
        driver.raft = RaftNode(
            self._node.key,
            voters,
            read_state(log.folder),
            log,
            RaftTimeouts(
                config.election_timeout_ms,
                config.fetch_timeout_ms,
                config.election_backoff_max_ms,
            ),
            self._random,
            driver.now_ms,
        )
        self._start_workers(driver, listener)
        driver.step()
        while driver.is_sole_voter and self._flusher.is_needed and driver.failure is None:
            self._flusher.flush_now()
            driver.step()
        while self._publisher.has_more:
            driver.step()
        self._flusher.start()
        driver.step()

    def _check(self, voters: VoterSet) -> None:
        if not voters and not self._bootstrap:
            raise QuorumError(
                "No voters are known: format the directory with --standalone, or set "
                "controller.quorum.bootstrap.servers or controller.quorum.voters."
            )
        if voters.includes(self._node.key) and not self._is_controller:
            raise QuorumError(
                f"Node {self._node.node_id} is a voter of the metadata quorum, but not a "
                "controller: set process.roles, or remove it from the voters first."
            )
        if voters.get(self._node.node_id) is not None and not voters.includes(self._node.key):
            _logger.warning(
                "Node %d is a voter with another directory id, and only an observer with this one. "
                "If its disk was replaced, remove the old voter and add this one.",
                self._node.node_id,
            )

    def _start_workers(self, driver: RaftDriver, listener: QuorumListener) -> None:
        background, peers = self._background, self._peers
        self._requests = QuorumRequestHandler(driver)
        self._fetches = MetadataFetchHandler(driver)
        self._publisher = CommitPublisher(driver, listener)
        self._flusher = MetadataLogFlusher(driver, background)
        election_sender = ElectionSender(driver, peers)
        fetcher = MetadataLogFetcher(
            driver, peers, background, self._publisher, must_be_durable=self._is_controller
        )
        self._voter_changes = VoterChanges(driver, peers)
        may_join = self._is_controller and self._config.auto_join
        VoterMembership(driver, peers, may_join=may_join).schedule_check()
        driver.set_workers(
            self._voter_changes.advance,
            self._fetches.advance,
            *([self._flusher.advance] if self._is_controller else []),
            election_sender.advance,
            fetcher.advance,
            self._publisher.advance,
        )

    async def stop(self) -> None:
        """Resigns if this node leads, announces that, and closes everything.

        The owner of the log directory closes it.
        """
        driver = self._driver
        if driver.failure is None:
            driver.raft.leadership.resign(driver.now_ms)
            driver.step()
            await self._resignation_acknowledged()
            await self._flusher.wait_idle()
        driver.close()
        self._fetches.close()
        self._voter_changes.close()
        if driver.failure is None:
            self._log.flush()

    def abandon(self) -> None:
        """Leaves the quorum without an announcement, after a start that failed."""
        self._driver.close()

    async def _resignation_acknowledged(self) -> None:
        """Waits until the other voters acknowledge the resignation, or for a limited time."""
        driver = self._driver
        acknowledged: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def finish() -> None:
            if not acknowledged.done():
                acknowledged.set_result(None)

        def check() -> None:
            role = driver.raft.role
            if not (isinstance(role, Resigned) and role.unacknowledged):
                finish()

        driver.add_worker(check)
        driver.call_later(_RESIGNATION_WAIT_MS, finish)
        await acknowledged

    # State

    @property
    def is_leader(self) -> bool:
        return self._driver.raft.is_leader

    @property
    def epoch(self) -> int:
        return self._driver.raft.epoch

    @property
    def high_watermark(self) -> int:
        return self._driver.raft.high_watermark

    @property
    def is_caught_up(self) -> bool:
        """Whether this node has all records that were committed when it last heard of a leader."""
        raft = self._driver.raft
        return raft.high_watermark >= raft.leader_high_watermark

    @property
    def end_offset(self) -> int:
        return self._log.end_offset

    @property
    def voters(self) -> VoterSet:
        return self._log.history.voters

    @property
    def kraft_version(self) -> int:
        """1 if the voters are in the log, 0 if they are a setting."""
        return self._log.history.kraft_version

    @property
    def leader(self) -> QuorumLeader | None:
        """The leader, and where the active controller listens."""
        if isinstance(self._driver.raft.role, Resigned):
            return None
        return self._driver.leader

    @property
    def is_leader_reachable(self) -> bool:
        """Whether this node leads, or the leader has responded and was not lost since."""
        role = self._driver.raft.role
        return isinstance(role, Leader) or (isinstance(role, Follower) and role.is_leader_reachable)

    @property
    def state_name(self) -> str:
        """The state of this node in the quorum, as Kafka names it."""
        role = self._driver.raft.role
        if isinstance(role, Follower) and not self._driver.raft.is_voter:
            return "observer"
        return type(role).__name__.lower()

    @property
    def peer_failures(self) -> PeerFailures:
        """Controllers that did not respond, and why."""
        return self._driver.peer_failures

    def describe(self) -> QuorumDescription:
        return describe(self._driver)

    # Appending

    def append(self, frames: Sequence[bytes], epoch: int, now_ms: int) -> int:
        """Appends encoded records as one batch. Returns the offset of the last one.

        Raises KafkaError NOT_CONTROLLER unless this node leads `epoch`.
        """
        driver = self._driver
        if not driver.raft.is_leader or driver.raft.epoch != epoch or driver.is_closed:
            raise KafkaError(
                ErrorCode.NOT_CONTROLLER, f"This node is not the leader of epoch {epoch}."
            )
        batch = build_batch([Record(0, now_ms, None, frame, []) for frame in frames])
        try:
            last_offset = self._log.append_as_leader(batch, epoch, now_ms)
        except OSError as error:
            driver.fail(error)
            raise
        driver.step_soon()
        return last_offset

    # Snapshots

    @property
    def newest_snapshot(self) -> SnapshotId | None:
        return self._log.newest_snapshot

    @property
    def bytes_since_snapshot(self) -> int:
        return self._log.bytes_since_snapshot

    def begin_snapshot(self, end_offset: int, epoch: int, now_ms: int) -> SnapshotWriter:
        """Returns a writer for the snapshot below `end_offset`; see `finish_snapshot`."""
        return self._log.begin_snapshot(end_offset, epoch, now_ms)

    def finish_snapshot(self, writer: SnapshotWriter) -> None:
        self._log.finish_snapshot(writer)

    def clean(self, now_ms: int) -> None:
        """Deletes old snapshots, and the part of the log that newer ones replace."""
        self._log.clean(now_ms, self.high_watermark)

    # Requests of other nodes

    async def handle_request(self, request: QuorumRequest, origin: RequestOrigin) -> Message:
        """Returns the response. A fetch waits while there is nothing new."""
        match request:
            case FetchRequest():
                response = self._fetches.fetch(request, origin)
                return await response if isinstance(response, asyncio.Future) else response
            case FetchSnapshotRequest():
                return self._requests.fetch_snapshot(request, origin)
            case VoteRequest():
                return self._requests.vote(request, origin)
            case BeginQuorumEpochRequest():
                return self._requests.begin_epoch(request, origin)
            case EndQuorumEpochRequest():
                return self._requests.end_epoch(request, origin)
            case AddRaftVoterRequest():
                return await self._voter_changes.add(request)
            case RemoveRaftVoterRequest():
                return await self._voter_changes.remove(request)
            case UpdateRaftVoterRequest():
                return await self._voter_changes.update(request, origin)
