"""This node's part in the metadata quorum: its copy of the log, and all that keeps it in step.

The order of life: `open`, `start`, then what the other members ask and what this node appends,
`stop`. Everything runs on the loop, except syncing to disk.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from random import Random

from barnabas.log import LogDirectory
from barnabas.log.background import Background
from barnabas.raft.addresses import Addresses
from barnabas.raft.asking import Asking
from barnabas.raft.contacts import Contacts
from barnabas.raft.core import Raft
from barnabas.raft.describing import QuorumDescription, describe
from barnabas.raft.driver import Driver
from barnabas.raft.exchange import QuorumLeader
from barnabas.raft.fetch_serving import FetchServing
from barnabas.raft.fetching import Fetching
from barnabas.raft.flushing import Flushing
from barnabas.raft.listener import QuorumListener
from barnabas.raft.member import Timeouts
from barnabas.raft.membership import Membership
from barnabas.raft.metadata_log import MetadataLog
from barnabas.raft.publishing import Publishing
from barnabas.raft.quorum_config import QuorumConfig
from barnabas.raft.quorum_state import read_state
from barnabas.raft.roles import Follower, Leader, Resigned
from barnabas.raft.served import Served
from barnabas.raft.snapshots import SnapshotId, SnapshotWriter
from barnabas.raft.voter_changes import VoterChanges
from barnabas.raft.voters import QuorumError, Voter, Voters
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
        node: Voter,
        cluster_id: str,
        bootstrap: Sequence[tuple[str, int]],
        config: QuorumConfig,
        *,
        is_controller: bool,
        peers: Peers,
        background: Background,
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
        node: Voter,
        *,
        static_voters: Voters | None = None,
        bootstrap: Sequence[tuple[str, int]] = (),
        config: QuorumConfig | None = None,
        is_controller: bool,
        peers: Peers,
        background: Background,
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
        addresses = Addresses(self._bootstrap, voters, self._config.listener_name)
        config = self._config
        driver = self._driver = Driver(
            self._node, self._cluster_id, log, addresses, config, self._clock, listener.failed
        )
        driver.raft = Raft(
            self._node.key,
            voters,
            read_state(log.folder),
            log,
            Timeouts(
                config.election_timeout_ms,
                config.fetch_timeout_ms,
                config.election_backoff_max_ms,
            ),
            self._random,
            driver.now_ms,
        )
        self._employ(driver, listener)
        driver.step()
        while driver.is_alone and self._flushing.is_needed and driver.failure is None:
            self._flushing.flush_now()
            driver.step()
        while self._publishing.has_more:
            driver.step()
        self._flushing.begin()
        driver.step()

    def _check(self, voters: Voters) -> None:
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

    def _employ(self, driver: Driver, listener: QuorumListener) -> None:
        background, peers = self._background, self._peers
        self._served = Served(driver)
        self._fetches = FetchServing(driver)
        self._publishing = Publishing(driver, listener)
        self._flushing = Flushing(driver, background)
        asking = Asking(driver, peers)
        fetching = Fetching(
            driver, peers, background, self._publishing, must_be_durable=self._is_controller
        )
        self._changes = VoterChanges(driver, peers)
        may_join = self._is_controller and self._config.auto_join
        Membership(driver, peers, may_join=may_join).look_again()
        driver.employ(
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
            driver.raft.resign(driver.now_ms)
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
            if not (isinstance(role, Resigned) and role.unaware):
                end()

        driver.watch(look)
        driver.later(_FAREWELL_MS, end)
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
    def voters(self) -> Voters:
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
    def hears_leader(self) -> bool:
        """Whether this node leads, or its leader has answered and not been lost since."""
        role = self._driver.raft.role
        return isinstance(role, Leader) or (isinstance(role, Follower) and role.hears_leader)

    @property
    def state_name(self) -> str:
        """What this node is in the quorum, in Kafka's words."""
        role = self._driver.raft.role
        if isinstance(role, Follower) and not self._driver.raft.is_voter:
            return "observer"
        return type(role).__name__.lower()

    @property
    def contacts(self) -> Contacts:
        """What came of asking the others."""
        return self._driver.contacts

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
