"""This node's part in the metadata quorum: its copy of the log, and all that keeps it in step.

The order of life: `open`, `start`, then what the other members ask and what this node appends,
`stop`. Everything runs on the loop, except syncing to disk.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from random import Random

from barnabas.log import LogDirectory
from barnabas.log.background import BackgroundExecutor
from barnabas.raft.addresses import ControllerAddresses, QuorumLeader
from barnabas.raft.commit_publisher import CommitPublisher
from barnabas.raft.driver import RaftDriver
from barnabas.raft.election_sender import ElectionSender
from barnabas.raft.fetch_handler import MetadataFetchHandler
from barnabas.raft.listener import QuorumListener
from barnabas.raft.log_fetcher import MetadataLogFetcher
from barnabas.raft.log_flusher import MetadataLogFlusher
from barnabas.raft.membership import VoterMembership
from barnabas.raft.metadata_log import MetadataLog
from barnabas.raft.peer_failures import PeerFailures
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
from barnabas.wire.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse
from barnabas.wire.messages.begin_quorum_epoch import (
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
)
from barnabas.wire.messages.end_quorum_epoch import EndQuorumEpochRequest, EndQuorumEpochResponse
from barnabas.wire.messages.fetch import FetchRequest, FetchResponse
from barnabas.wire.messages.fetch_snapshot import FetchSnapshotRequest, FetchSnapshotResponse
from barnabas.wire.messages.remove_raft_voter import (
    RemoveRaftVoterRequest,
    RemoveRaftVoterResponse,
)
from barnabas.wire.messages.update_raft_voter import (
    UpdateRaftVoterRequest,
    UpdateRaftVoterResponse,
)
from barnabas.wire.messages.vote import VoteRequest, VoteResponse
from barnabas.wire.peer import Peers
from barnabas.wire.records.build import Record, build_batch

_logger = logging.getLogger(__name__)

_FAREWELL_MS = 500
"""How long a leader that stops waits for the others to know; who cannot hear it will find out."""


class Quorum:
    """A voter, or an observer, of the metadata log."""

    def __init__(
        self,
        log: MetadataLog,
        node: VoterNode,
        cluster_id: str,
        bootstrap: Sequence[tuple[str, int]],
        config: QuorumConfig,
        *,
        is_controller: bool,
        peers: Peers,
        background: BackgroundExecutor,
        clock: Callable[[], int],
        random: Random,
    ) -> None:
        self._log = log
        self._node = node
        self._cluster_id = cluster_id
        self._bootstrap = bootstrap
        self._config = config
        self._is_controller = is_controller
        self._peers = peers
        self._background = background
        self._clock = clock
        self._random = random
        self.is_new = log.end_offset == 0
        """Whether no controller had written anything when the log was opened."""

    @classmethod
    def open(
        cls,
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
    ) -> "Quorum":
        """Open, or begin, the metadata log in a formatted directory."""
        config = config or QuorumConfig()
        return cls(
            MetadataLog.open(directory, config, static_voters),
            node,
            directory.meta.cluster_id,
            bootstrap,
            config,
            is_controller=is_controller,
            peers=peers,
            background=background,
            clock=clock,
            random=random,
        )

    def start(self, listener: QuorumListener) -> None:
        """Tell `listener` what is surely committed, and take part from here on.

        A sole voter leads when this returns, and all that its log has is committed. Blocks.
        """
        log = self._log
        voters = log.history.voters
        self._check(voters)
        log.flush()  # what it tells others to have must be on disk
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
        self._employ(driver, listener)
        driver.step()
        while driver.is_sole_voter and self._flushing.is_needed and driver.failure is None:
            self._flushing.flush_now()
            driver.step()
        while self._publishing.has_more:
            driver.step()
        self._flushing.begin()
        driver.step()

    def _check(self, voters: VoterSet) -> None:
        if not voters and not self._bootstrap:
            raise QuorumError(
                "No voters are known: format the directory with --standalone, or set "
                "controller.quorum.bootstrap.servers or controller.quorum.voters."
            )
        if voters.includes(self._node.key) and not self._is_controller:
            raise QuorumError(
                f"Node {self._node.node_id} is a voter of the metadata quorum, but has not the "
                "role of a controller: set process.roles, or remove it from the voters first."
            )
        if voters.get(self._node.node_id) is not None and not voters.includes(self._node.key):
            _logger.warning(
                "Node %d votes with another directory than this one, and observes with this. If "
                "its disk was replaced, remove the old voter and add this one.",
                self._node.node_id,
            )

    def _employ(self, driver: RaftDriver, listener: QuorumListener) -> None:
        background, peers = self._background, self._peers
        self._served = QuorumRequestHandler(driver)
        self._fetches = MetadataFetchHandler(driver)
        self._publishing = CommitPublisher(driver, listener)
        self._flushing = MetadataLogFlusher(driver, background)
        asking = ElectionSender(driver, peers)
        fetching = MetadataLogFetcher(
            driver, peers, background, self._publishing, must_be_durable=self._is_controller
        )
        self._changes = VoterChanges(driver, peers)
        may_join = self._is_controller and self._config.auto_join
        VoterMembership(driver, peers, may_join=may_join).look_again()
        driver.set_workers(
            self._changes.advance,
            self._fetches.advance,
            *([self._flushing.advance] if self._is_controller else []),
            asking.advance,
            fetching.advance,
            self._publishing.advance,
        )

    async def stop(self) -> None:
        """Resign if this node leads, and tell the others; then let go of everything.

        The log directory is closed by its owner.
        """
        driver = self._driver
        if driver.failure is None:
            driver.raft.leadership.resign(driver.now_ms)
            driver.step()
            await self._successors_told()
            await self._flushing.idle()
        driver.close()
        self._fetches.close()
        self._changes.close()
        if driver.failure is None:
            self._log.flush()

    def abandon(self) -> None:
        """Take no part any more, and say nothing of it: the node that was to start did not."""
        self._driver.close()

    async def _successors_told(self) -> None:
        """Wait until the other voters know, or have had the time to."""
        driver = self._driver
        told: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def end() -> None:
            if not told.done():
                told.set_result(None)

        def look() -> None:
            role = driver.raft.role
            if not (isinstance(role, Resigned) and role.unacknowledged):
                end()

        driver.add_worker(look)
        driver.call_later(_FAREWELL_MS, end)
        await told

    # What it is

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
    def end_offset(self) -> int:
        return self._log.end_offset

    @property
    def voters(self) -> VoterSet:
        return self._log.history.voters

    @property
    def kraft_version(self) -> int:
        """1 where voters are kept in the log, 0 where they are a setting."""
        return self._log.history.kraft_version

    @property
    def leader(self) -> QuorumLeader | None:
        """Who leads, and where the active controller listens."""
        if isinstance(self._driver.raft.role, Resigned):
            return None
        return self._driver.leader

    @property
    def is_leader_reachable(self) -> bool:
        """Whether this node leads, or its leader has answered and not been lost since."""
        role = self._driver.raft.role
        return isinstance(role, Leader) or (isinstance(role, Follower) and role.is_leader_reachable)

    @property
    def state_name(self) -> str:
        """What this node is in the quorum, in Kafka's words."""
        role = self._driver.raft.role
        if isinstance(role, Follower) and not self._driver.raft.is_voter:
            return "observer"
        return type(role).__name__.lower()

    @property
    def peer_failures(self) -> PeerFailures:
        """What came of asking the others."""
        return self._driver.peer_failures

    def describe(self) -> QuorumDescription:
        return describe(self._driver)

    # Appending

    def append(self, frames: Sequence[bytes], epoch: int, now_ms: int) -> int:
        """Write encoded records as one batch; returns the offset of the last.

        NOT_CONTROLLER unless this node leads `epoch`.
        """
        driver = self._driver
        if not driver.raft.is_leader or driver.raft.epoch != epoch or driver.is_closed:
            raise KafkaError(ErrorCode.NOT_CONTROLLER, f"This node does not lead epoch {epoch}.")
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
        """A writer for a snapshot of everything below `end_offset`; see `finish_snapshot`."""
        return self._log.begin_snapshot(end_offset, epoch, now_ms)

    def finish_snapshot(self, writer: SnapshotWriter) -> None:
        self._log.finish_snapshot(writer)

    def clean(self, now_ms: int) -> None:
        """Remove old snapshots and the part of the log that newer ones stand for."""
        self._log.clean(now_ms, self.high_watermark)

    # What other members ask

    def vote(self, request: VoteRequest, api_version: int) -> VoteResponse:
        return self._served.vote(request, api_version)

    def begin_epoch(
        self, request: BeginQuorumEpochRequest, api_version: int
    ) -> BeginQuorumEpochResponse:
        return self._served.begin_epoch(request, api_version)

    def end_epoch(self, request: EndQuorumEpochRequest, api_version: int) -> EndQuorumEpochResponse:
        return self._served.end_epoch(request, api_version)

    def fetch_snapshot(
        self, request: FetchSnapshotRequest, api_version: int
    ) -> FetchSnapshotResponse:
        return self._served.fetch_snapshot(request, api_version)

    def fetch(
        self, request: FetchRequest, api_version: int
    ) -> "FetchResponse | asyncio.Future[FetchResponse]":
        """The answer, or a promise of it while there is nothing to tell."""
        return self._fetches.fetch(request, api_version)

    async def add_voter(self, request: AddRaftVoterRequest) -> AddRaftVoterResponse:
        return await self._changes.add(request)

    async def remove_voter(self, request: RemoveRaftVoterRequest) -> RemoveRaftVoterResponse:
        return await self._changes.remove(request)

    async def update_voter(self, request: UpdateRaftVoterRequest) -> UpdateRaftVoterResponse:
        return await self._changes.update(request)
