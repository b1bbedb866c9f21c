"""Passes committed batches and changes of the leader to the listener, once and in order."""

from collections.abc import Iterable, Sequence
from typing import Protocol

from barnabas.raft.driver import RaftDriver, as_disk_error
from barnabas.raft.metadata_log import CommittedBatch
from barnabas.raft.roles import NO_NODE, Resigned
from barnabas.wire.errors import KafkaError

_PIECES_A_TURN = 4
"""How many reads of a mebibyte at most are passed before other tasks of the loop run."""


class QuorumListener(Protocol):
    """Called on the loop, in the order of the log."""

    def on_committed(self, batches: Sequence[CommittedBatch]) -> None:
        """The next batches of the log are committed; every batch is passed once."""

    def on_snapshot(self, batches: Iterable[CommittedBatch]) -> None:
        """A snapshot replaces all records so far. `batches` must be read to the end at once."""

    def on_became_leader(self, epoch: int) -> None:
        """This node leads, and has passed everything that is committed before its epoch."""

    def on_resigned(self, epoch: int) -> None:
        """This node no longer leads."""

    def on_leader_changed(self, leader_id: int | None, epoch: int) -> None:
        """Another node leads, or none that this node knows of."""

    def on_failure(self, error: OSError) -> None:
        """The disk failed or is corrupt: this node must stop."""


class CommitPublisher:
    """Knows how far the listener is. Only records below the high watermark reach it."""

    __slots__ = (
        "_driver",
        "_leader",
        "_leading_epoch",
        "_listener",
        "_snapshot_pending",
        "has_more",
        "next_offset",
    )

    def __init__(self, driver: RaftDriver, listener: QuorumListener) -> None:
        self._driver = driver
        self._listener = listener
        self._leader: tuple[int | None, int] = (None, 0)
        # The epoch in which the listener knows that this node leads.
        self._leading_epoch: int | None = None
        self.next_offset = 0
        # Whether to pass the newest snapshot before anything else.
        self._snapshot_pending = True
        # Whether more is committed than one step may pass.
        self.has_more = False

    def install_snapshot(self) -> None:
        """Has the newest snapshot passed next, as it replaces records that were not passed."""
        self._snapshot_pending = True

    def advance(self) -> None:
        self._publish_leader()
        if self._snapshot_pending:
            self._snapshot_pending = False
            self._publish_snapshot()
        self.has_more = all(self._publish_batches() for _ in range(_PIECES_A_TURN))
        if self.has_more:
            self._driver.step_soon()
        self._publish_leadership()

    def _publish_snapshot(self) -> None:
        """Passes the newest snapshot, whose records are always committed."""
        snapshot = self._driver.log.newest_snapshot
        if snapshot is None:
            return
        try:
            self._listener.on_snapshot(self._driver.log.read_snapshot(snapshot))
        except (KafkaError, EOFError) as error:
            self._driver.fail(as_disk_error(error))
            return
        self.next_offset = snapshot.end_offset

    def _publish_batches(self) -> bool:
        """Passes the next batches. Returns whether there were any."""
        log, high_watermark = self._driver.log, self._driver.raft.high_watermark
        if self.next_offset >= high_watermark or self._driver.failure is not None:
            return False
        try:
            batches, self.next_offset = log.read_committed(self.next_offset, high_watermark)
        except (KafkaError, EOFError) as error:
            self._driver.fail(as_disk_error(error))
            return False
        if batches:
            self._listener.on_committed(batches)
        return bool(batches)

    def _publish_leader(self) -> None:
        raft = self._driver.raft
        if self._leading_epoch is not None and (
            not raft.is_leader or raft.epoch != self._leading_epoch
        ):
            epoch, self._leading_epoch = self._leading_epoch, None
            self._listener.on_resigned(epoch)
        has_leader = raft.leader_id != NO_NODE and not isinstance(raft.role, Resigned)
        leader = (raft.leader_id if has_leader else None, raft.epoch)
        if leader != self._leader:
            self._leader = leader
            self._listener.on_leader_changed(*leader)

    def _publish_leadership(self) -> None:
        leader = self._driver.leader_role
        if leader is None or self._leading_epoch is not None or self._driver.failure is not None:
            return
        if self.next_offset > leader.start_offset:
            self._leading_epoch = leader.epoch
            self._listener.on_became_leader(leader.epoch)
