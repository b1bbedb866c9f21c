"""Drives the consensus: performs its effects, keeps its time, and wakes those who act on it.

Whatever happens is told to `raft` and followed by `step`. A step performs the effects in order,
then lets every worker look at what there is to do now: answer who waits, flush, ask, fetch,
publish. So nobody acts on a state that is not on disk.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence

from barnabas.raft import quorum_state
from barnabas.raft.addresses import ControllerAddresses, QuorumLeader
from barnabas.raft.control_records import ControlRecord, control_batch, leader_change, voter_records
from barnabas.raft.effects import AppendLeaderChange, Effect, Persist
from barnabas.raft.metadata_log import MetadataLog
from barnabas.raft.peer_failures import PeerFailures
from barnabas.raft.quorum_config import QuorumConfig
from barnabas.raft.raft_node import RaftNode
from barnabas.raft.roles import NO_NODE, Leader
from barnabas.raft.voter_history import OFFSET_BEFORE_LOG
from barnabas.raft.voters import VoterNode
from barnabas.wire.errors import ErrorCode, KafkaError

Worker = Callable[[], None]

_logger = logging.getLogger(__name__)


class RaftDriver:
    """One node's consensus, and what all who work around it share."""

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
        self.raft: RaftNode  # set as soon as there is one: it begins at this driver's time
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
        self._soon: asyncio.Handle | None = None
        self._is_stepping = False
        self._again = False

    def set_workers(self, *workers: Worker) -> None:
        """Each is called after every step, in this order."""
        self._workers = workers

    def add_worker(self, worker: Worker) -> None:
        """Call this one, too, from now on."""
        self._workers = (*self._workers, worker)
        self.step()

    @property
    def now_ms(self) -> int:
        """Time that only passes: what the consensus measures its timeouts with."""
        return int(self._loop.time() * 1000)

    @property
    def is_sole_voter(self) -> bool:
        """Whether this node is the only voter: then it needs nobody to commit."""
        return len(self.raft.voters) == 1 and self.raft.is_voter

    @property
    def leader(self) -> QuorumLeader | None:
        """Who leads, if it is known where it listens."""
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

    def cluster_error(self, cluster_id: str | None) -> ErrorCode:
        """What keeps this node from answering anybody of that cluster."""
        if cluster_id is not None and cluster_id != self.cluster_id:
            return ErrorCode.INCONSISTENT_CLUSTER_ID
        return ErrorCode.BROKER_NOT_AVAILABLE if self.is_closed else ErrorCode.NONE

    # Stepping

    def step(self) -> None:
        """Something happened: do what follows from it."""
        self._again = True
        if self._is_stepping or self.is_closed:
            return
        self._is_stepping = True
        try:
            while self._again and not self.is_closed:
                self._again = False
                self.perform_effects()
                for work in self._workers:
                    work()
                self.perform_effects()
        except OSError as error:
            self.fail(error)
        except Exception as error:
            # A listener that cannot take in what is committed would be wrong ever after.
            self.fail(as_disk_error(error))
            raise
        finally:
            self._is_stepping = False
        self._keep_time()

    def step_soon(self) -> None:
        """A step once everything else that is due now has happened, too."""
        if self._soon is None:
            self._soon = self._loop.call_soon(self._step_now)

    def _step_now(self) -> None:
        self._soon = None
        self.step()

    def perform_effects(self) -> None:
        """Do what the consensus asks for; roles and the high watermark the workers look at."""
        while effects := self.raft.take_effects():
            self._again = True
            self._persist(effects)
            for effect in effects:
                if isinstance(effect, AppendLeaderChange):
                    records = [leader_change(effect.change), *self._own_voter_update()]
                    self.append_control(records, effect.epoch)

    def _persist(self, effects: Sequence[Effect]) -> None:
        """Write the last of the states; nobody has heard of those before it."""
        states = [effect.state for effect in effects if isinstance(effect, Persist)]
        if states:
            static = None if self.log.history.kraft_version else self.raft.voters.ids()
            quorum_state.write_state(self.log.folder, states[-1], static)

    def _keep_time(self) -> None:
        """Have a timer that is not later than the deadline; an early one looks again."""
        deadline_ms = self.raft.deadline_ms
        if deadline_ms is None or self.is_closed:
            return
        if self._tick is not None:
            if self._tick_ms <= deadline_ms:
                return
            self._tick.cancel()
        self._tick_ms = deadline_ms
        wait_s = max(deadline_ms - self.now_ms, 0) / 1000
        self._tick = self._loop.call_later(wait_s, self._time_came)

    def _time_came(self) -> None:
        self._tick = None
        self.raft.tick(self.now_ms)
        self.step()

    def call_later(self, wait_ms: int, work: Callable[[], None]) -> None:
        """Do it after a while, and then a step; not if the node has stopped by then."""

        def do() -> None:
            self._timers.discard(timer)
            work()
            self.step()

        timer = self._loop.call_later(wait_ms / 1000, do)
        self._timers.add(timer)

    # Appending

    def append_control(self, records: Sequence[ControlRecord], epoch: int) -> int:
        """Write as the leader of `epoch`; returns the last offset."""
        now_ms = self.wall_ms()
        before = self.log.history.offset
        batch = control_batch(records, now_ms)
        last_offset = self.log.append_as_leader(batch, epoch, now_ms)
        if self.log.history.offset != before:
            self.on_voters_changed()
        return last_offset

    def on_voters_changed(self) -> None:
        """The newest record of voters is another one now."""
        history = self.log.history
        offset = OFFSET_BEFORE_LOG if history.offset is None else history.offset
        _logger.info("The voters are %s, by offset %d.", history.voters.ids(), offset)
        self.addresses.update_voters(history.voters)
        self.raft.on_voters_changed(history.voters, offset, self.now_ms)

    def _own_voter_update(self) -> list[ControlRecord]:
        """The voters, if the log does not have them yet or has another address of this node."""
        history = self.log.history
        if not history.kraft_version:
            return []
        is_known = history.voters.get(self.node.node_id) == self.node
        if history.offset != OFFSET_BEFORE_LOG and is_known:
            return []
        return voter_records(history.voters.with_voter(self.node))

    @property
    def leader_role(self) -> Leader | None:
        role = self.raft.role
        return role if isinstance(role, Leader) else None

    # Ending

    def fail(self, error: OSError) -> None:
        """The disk refused: nobody can know what it has, so this node must not go on."""
        if self.failure is None:
            self.failure = error
            _logger.critical("The metadata log failed: %s", error)
            self.close()
            self._on_failure(error)

    def close(self) -> None:
        self.is_closed = True
        for timer in self._timers:
            timer.cancel()
        self._timers.clear()
        for handle in (self._tick, self._soon):
            if handle is not None:
                handle.cancel()
        self._tick = self._soon = None


def as_disk_error(error: Exception) -> OSError:
    """What cannot be read from the disk is a failure of the disk."""
    if isinstance(error, OSError):
        return error
    return OSError(error.message if isinstance(error, KafkaError) else str(error))
