"""Drives the consensus: performs its effects, runs its timer, and calls the workers around it.

Every event is passed to `raft` and followed by `step`. A step performs the effects in order, then
calls every worker: they respond to waiting requests, flush, send requests, fetch and publish. So
no worker acts on a state that is not on disk.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence

from barnabas.raft import quorum_state
from barnabas.raft.addresses import ControllerAddresses, PeerFailures, QuorumLeader
from barnabas.raft.control_records import ControlRecord, control_batch, leader_change, voter_records
from barnabas.raft.messages import AppendLeaderChange, Effect, Persist
from barnabas.raft.metadata_log import MetadataLog
from barnabas.raft.quorum_config import QuorumConfig
from barnabas.raft.raft_node import RaftNode
from barnabas.raft.roles import NO_NODE, Leader
from barnabas.raft.voters import OFFSET_BEFORE_LOG, VoterNode
from barnabas.wire.errors import ErrorCode, KafkaError

Worker = Callable[[], None]

_logger = logging.getLogger(__name__)


class RaftDriver:
    """The consensus of one node, and what the workers around it share."""

    def __init__(
        self,
        node: VoterNode,
        cluster_id: str,
        log: MetadataLog,
        addresses: ControllerAddresses,
        config: QuorumConfig,
        clock: Callable[[], int],
        on_failure: Callable[[OSError], None],
    ) -> None:
        self.node = node
        self.cluster_id = cluster_id
        self.log = log
        self.raft: RaftNode  # set by `Quorum.start`, as it begins at this driver's time
        self.addresses = addresses
        self.peer_failures = PeerFailures()
        self.config = config
        self.wall_ms = clock
        self.failure: OSError | None = None
        self.is_closed = False
        self._on_failure = on_failure
        self._loop = asyncio.get_running_loop()
        self._workers: Sequence[Worker] = ()
        self._timers: set[asyncio.TimerHandle] = set()
        self._tick: asyncio.TimerHandle | None = None
        self._tick_ms = 0
        self._soon_handle: asyncio.Handle | None = None
        self._is_stepping = False
        self._needs_step = False

    def set_workers(self, *workers: Worker) -> None:
        """Has these called after every step, in this order."""
        self._workers = workers

    def add_worker(self, worker: Worker) -> None:
        """Has this called after every step, too, and once at once."""
        self._workers = (*self._workers, worker)
        self.step()

    @property
    def now_ms(self) -> int:
        """The monotonic time by which the consensus measures timeouts."""
        return int(self._loop.time() * 1000)

    @property
    def is_sole_voter(self) -> bool:
        """Whether this node is the only voter, so that it commits alone."""
        return len(self.raft.voters) == 1 and self.raft.is_voter

    @property
    def leader(self) -> QuorumLeader | None:
        """The leader, if its address is known."""
        raft = self.raft
        if raft.leader_id == NO_NODE:
            return None
        if raft.leader_id == self.node.node_id:
            address = self.addresses.select(self.node.endpoints)
        else:
            address = self.addresses.find(raft.leader_id)
        if address is None:
            return None
        return QuorumLeader(raft.leader_id, raft.epoch, address.host, address.port)

    def leader_at(self, listener: str) -> QuorumLeader | None:
        """The leader at its listener of that name, if the address is known.

        While a cluster changes from one controller listener to another, nodes use either.
        """
        if listener == self.config.listener_name:
            return self.leader
        raft = self.raft
        is_own = raft.leader_id == self.node.node_id
        voter = self.node if is_own else self.log.history.voters.get(raft.leader_id)
        for endpoint in voter.endpoints if voter is not None else ():
            if endpoint.name == listener:
                return QuorumLeader(raft.leader_id, raft.epoch, endpoint.host, endpoint.port)
        return None

    def cluster_error(self, cluster_id: str | None) -> ErrorCode:
        """Returns the error for a request that names `cluster_id`, NONE if it can be handled."""
        if cluster_id is not None and cluster_id != self.cluster_id:
            return ErrorCode.INCONSISTENT_CLUSTER_ID
        return ErrorCode.BROKER_NOT_AVAILABLE if self.is_closed else ErrorCode.NONE

    # Stepping

    def step(self) -> None:
        """Performs what follows from an event that was passed to the consensus."""
        self._needs_step = True
        if self._is_stepping or self.is_closed:
            return
        self._is_stepping = True
        try:
            while self._needs_step and not self.is_closed:
                self._needs_step = False
                self.perform_effects()
                for work in self._workers:
                    work()
                self.perform_effects()
        except OSError as error:
            self.fail(error)
        except Exception as error:
            # A listener that missed committed records would stay wrong.
            self.fail(as_disk_error(error))
            raise
        finally:
            self._is_stepping = False
        self._set_timer()

    def step_soon(self) -> None:
        """Steps in the next iteration of the loop, so that several appends share one step."""
        if self._soon_handle is None:
            self._soon_handle = self._loop.call_soon(self._on_step_soon)

    def _on_step_soon(self) -> None:
        self._soon_handle = None
        self.step()

    def perform_effects(self) -> None:
        """Performs the effects; the workers look at role and high watermark themselves."""
        while effects := self.raft.take_effects():
            self._needs_step = True
            self._persist(effects)
            for effect in effects:
                if isinstance(effect, AppendLeaderChange):
                    change = leader_change(effect.leader_id, effect.voters, effect.granting_voters)
                    records = [change, *self._own_voter_update()]
                    self.append_control(records, effect.epoch)

    def _persist(self, effects: Sequence[Effect]) -> None:
        """Writes the last of the states; no other node has seen the earlier ones."""
        states = [effect.state for effect in effects if isinstance(effect, Persist)]
        if states:
            static = None if self.log.history.kraft_version else self.raft.voters.ids()
            quorum_state.write_state(self.log.folder, states[-1], static)

    def _set_timer(self) -> None:
        """Sets a timer not later than the deadline; one that fires early is set again."""
        deadline_ms = self.raft.deadline_ms
        if deadline_ms is None or self.is_closed:
            return
        if self._tick is not None:
            if self._tick_ms <= deadline_ms:
                return
            self._tick.cancel()
        self._tick_ms = deadline_ms
        wait_s = max(deadline_ms - self.now_ms, 0) / 1000
        self._tick = self._loop.call_later(wait_s, self._on_timer)

    def _on_timer(self) -> None:
        self._tick = None
        self.raft.tick(self.now_ms)
        self.step()

    def call_later(self, wait_ms: int, work: Callable[[], None]) -> None:
        """Calls `work` after `wait_ms`, then steps; not if the node has stopped by then."""

        def run() -> None:
            self._timers.discard(timer)
            work()
            self.step()

        timer = self._loop.call_later(wait_ms / 1000, run)
        self._timers.add(timer)

    # Appending

    def append_control(self, records: Sequence[ControlRecord], epoch: int) -> int:
        """Appends control records as the leader of `epoch`. Returns the last offset."""
        now_ms = self.wall_ms()
        offset_before = self.log.history.offset
        batch = control_batch(records, now_ms)
        last_offset = self.log.append_as_leader(batch, epoch, now_ms)
        if self.log.history.offset != offset_before:
            self.on_voters_changed()
        return last_offset

    def on_voters_changed(self) -> None:
        """Adopts the voters of the newest record in the log."""
        history = self.log.history
        offset = OFFSET_BEFORE_LOG if history.offset is None else history.offset
        _logger.info("Voters are %s as of offset %d", history.voters.ids(), offset)
        self.addresses.update_voters(history.voters)
        self.raft.on_voters_changed(history.voters, offset, self.now_ms)

    def _own_voter_update(self) -> list[ControlRecord]:
        """Returns the voters if the log lacks them, or has other endpoints of this node."""
        history = self.log.history
        if not history.kraft_version:
            return []
        is_current = history.voters.get(self.node.node_id) == self.node
        if history.offset != OFFSET_BEFORE_LOG and is_current:
            return []
        return voter_records(history.voters.with_voter(self.node))

    @property
    def leader_role(self) -> Leader | None:
        role = self.raft.role
        return role if isinstance(role, Leader) else None

    # Stopping

    def fail(self, error: OSError) -> None:
        """Stops this node after a disk error: what the disk holds is no longer known."""
        if self.failure is None:
            self.failure = error
            _logger.critical("The metadata log cannot be written or read: %s", error)
            self.close()
            self._on_failure(error)

    def close(self) -> None:
        self.is_closed = True
        for timer in self._timers:
            timer.cancel()
        self._timers.clear()
        for handle in (self._tick, self._soon_handle):
            if handle is not None:
                handle.cancel()
        self._tick = self._soon_handle = None


def as_disk_error(error: Exception) -> OSError:
    """Returns the OSError that reports `error`: what cannot be read is a disk error."""
    if isinstance(error, OSError):
        return error
    return OSError(error.message if isinstance(error, KafkaError) else str(error))
