"""Tells the listener what is committed and who leads, each once and in order."""

from barnabas.raft.driver import Driver, as_failure
from barnabas.raft.listener import QuorumListener
from barnabas.raft.roles import NOBODY, Resigned
from barnabas.wire.errors import KafkaError

_PIECES_A_TURN = 4
"""What is told before others on the loop get their turn: a piece is a mebibyte at most."""


class Publishing:
    """How far the listener has come. Only what is below the high watermark reaches it."""

    __slots__ = ("_driver", "_leader", "_leads", "_listener", "next_offset")

    def __init__(self, driver: Driver, listener: QuorumListener) -> None:
        self._driver = driver
        self._listener = listener
        self._leader: tuple[int | None, int] = (None, 0)
        # The epoch in which the listener was told that this node leads.
        self._leads: int | None = None
        self.next_offset = 0

    @property
    def is_behind(self) -> bool:
        return self.next_offset < self._driver.raft.high_watermark

    def begin(self) -> None:
        """Tell the newest snapshot: it is committed, whatever else is."""
        snapshot = self._driver.log.newest_snapshot
        if snapshot is None:
            return
        try:
            self._listener.reset(self._driver.log.read_snapshot(snapshot))
        except (KafkaError, EOFError) as error:
            self._driver.fail(as_failure(error))
            return
        self.next_offset = snapshot.end_offset

    def advance(self) -> None:
        self._tell_leader()
        for _ in range(_PIECES_A_TURN):
            if not self.is_behind:
                break
            self._tell_piece()
        if self.is_behind and self._driver.failure is None:
            self._driver.step_soon()
        self._tell_if_it_leads()

    def _tell_piece(self) -> None:
        log, raft = self._driver.log, self._driver.raft
        try:
            batches, self.next_offset = log.read_committed(self.next_offset, raft.high_watermark)
        except (KafkaError, EOFError) as error:
            self._driver.fail(as_failure(error))
            return
        self._listener.committed(batches)

    def _tell_leader(self) -> None:
        raft = self._driver.raft
        if self._leads is not None and (not raft.is_leader or raft.epoch != self._leads):
            epoch, self._leads = self._leads, None
            self._listener.resigned(epoch)
        has_leader = raft.leader_id != NOBODY and not isinstance(raft.role, Resigned)
        leader = (raft.leader_id if has_leader else None, raft.epoch)
        if leader != self._leader:
            self._leader = leader
            self._listener.leader_changed(*leader)

    def _tell_if_it_leads(self) -> None:
        leader = self._driver.leader_role
        if leader is None or self._leads is not None or self._driver.failure is not None:
            return
        if self.next_offset > leader.start_offset:
            self._leads = leader.epoch
            self._listener.leads(leader.epoch)
