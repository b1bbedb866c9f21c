"""Tells the listener what is committed and who leads, each once and in order."""

from barnabas.raft.driver import RaftDriver, as_disk_error
from barnabas.raft.listener import QuorumListener
from barnabas.raft.roles import NO_NODE, Resigned
from barnabas.wire.errors import KafkaError

_PIECES_A_TURN = 4
"""What is told before others on the loop get their turn: a piece is a mebibyte at most."""


class CommitPublisher:
    """How far the listener has come. Only what is below the high watermark reaches it."""

    __slots__ = (
        "_begins_anew",
        "_driver",
        "_leader",
        "_leads",
        "_listener",
        "has_more",
        "next_offset",
    )

    def __init__(self, driver: RaftDriver, listener: QuorumListener) -> None:
        self._driver = driver
        self._listener = listener
        self._leader: tuple[int | None, int] = (None, 0)
        # The epoch in which the listener was told that this node leads.
        self._leads: int | None = None
        self.next_offset = 0
        # Whether the newest snapshot is to be told before anything else.
        self._begins_anew = True
        # Whether more is committed than what a turn was enough for.
        self.has_more = False

    def install_snapshot(self) -> None:
        """A snapshot has come that stands for more than what was told."""
        self._begins_anew = True

    def advance(self) -> None:
        self._tell_leader()
        if self._begins_anew:
            self._begins_anew = False
            self._tell_snapshot()
        self.has_more = all(self._tell_piece() for _ in range(_PIECES_A_TURN))
        if self.has_more:
            self._driver.step_soon()
        self._tell_if_it_leads()

    def _tell_snapshot(self) -> None:
        """The newest snapshot is committed, whatever else is."""
        snapshot = self._driver.log.newest_snapshot
        if snapshot is None:
            return
        try:
            self._listener.on_snapshot(self._driver.log.read_snapshot(snapshot))
        except (KafkaError, EOFError) as error:
            self._driver.fail(as_disk_error(error))
            return
        self.next_offset = snapshot.end_offset

    def _tell_piece(self) -> bool:
        """Tell the next batches; whether there were any."""
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

    def _tell_leader(self) -> None:
        raft = self._driver.raft
        if self._leads is not None and (not raft.is_leader or raft.epoch != self._leads):
            epoch, self._leads = self._leads, None
            self._listener.on_resigned(epoch)
        has_leader = raft.leader_id != NO_NODE and not isinstance(raft.role, Resigned)
        leader = (raft.leader_id if has_leader else None, raft.epoch)
        if leader != self._leader:
            self._leader = leader
            self._listener.on_leader_changed(*leader)

    def _tell_if_it_leads(self) -> None:
        leader = self._driver.leader_role
        if leader is None or self._leads is not None or self._driver.failure is not None:
            return
        if self.next_offset > leader.start_offset:
            self._leads = leader.epoch
            self._listener.on_became_leader(leader.epoch)
