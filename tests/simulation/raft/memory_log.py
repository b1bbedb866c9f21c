"""The disk of a simulated raft node: its quorum state, and a log of which a crash keeps a part."""

from bisect import bisect_right
from random import Random
from typing import NamedTuple

from tests.simulation.world.clock import Latency

from barnabas.log import EpochEndOffset
from barnabas.raft.messages import QuorumState
from barnabas.raft.snapshots import SnapshotId
from barnabas.raft.voters import VoterSet

FAST_FLUSH_MS = 3


class Record(NamedTuple):
    """A record; the `content` of a voters record is the voters."""

    epoch: int
    content: str | VoterSet


class Snapshot(NamedTuple):
    id: SnapshotId
    voters: VoterSet
    voters_offset: int


class MemoryLog:
    """A `LogView` that can be appended to; a crash truncates records that are not durable."""

    def __init__(self, voters: VoterSet) -> None:
        self._records: list[Record] = []
        self._static = voters
        # Where each epoch that has records, or is the snapshot's, begins.
        self._epochs: list[tuple[int, int]] = []
        self._voters: list[tuple[int, VoterSet]] = []
        self.snapshot: Snapshot | None = None
        self.start_offset = 0
        self.durable_end_offset = 0
        # Counts truncations: the end of a flush that began before one does not count.
        self.truncations = 0

    @property
    def end_offset(self) -> int:
        return self.start_offset + len(self._records)

    @property
    def last_epoch(self) -> int:
        return self._epochs[-1][0] if self._epochs else 0

    @property
    def newest_snapshot(self) -> SnapshotId | None:
        return self.snapshot.id if self.snapshot else None

    oldest_snapshot = newest_snapshot

    def epoch_end(self, epoch: int) -> EpochEndOffset:
        position = bisect_right(self._epochs, (epoch, self.end_offset + 1))
        if position == 0:
            return EpochEndOffset(0, self.start_offset)
        ends = self._epochs[position][1] if position < len(self._epochs) else self.end_offset
        return EpochEndOffset(self._epochs[position - 1][0], ends)

    def newest_voters(self) -> tuple[VoterSet, int]:
        """Returns the voters, and the offset of their record."""
        if self._voters:
            offset, voters = self._voters[-1]
            return voters, offset
        if self.snapshot is not None:
            return self.snapshot.voters, self.snapshot.voters_offset
        return self._static, -1

    def at(self, offset: int) -> Record:
        return self._records[offset - self.start_offset]

    def read(self, offset: int, limit: int) -> list[Record]:
        begin = offset - self.start_offset
        return self._records[begin : begin + limit]

    def append(self, record: Record) -> None:
        if record.epoch != self.last_epoch:
            self._epochs.append((record.epoch, self.end_offset))
        if isinstance(record.content, VoterSet):
            self._voters.append((self.end_offset, record.content))
        self._records.append(record)

    def truncate(self, end_offset: int) -> None:
        del self._records[end_offset - self.start_offset :]
        while self._epochs and self._epochs[-1][1] >= end_offset > self.start_offset:
            self._epochs.pop()
        if end_offset == self.start_offset:
            self._epochs = [(self.snapshot.id.epoch, self.start_offset)] if self.snapshot else []
        while self._voters and self._voters[-1][0] >= end_offset:
            self._voters.pop()
        self.durable_end_offset = min(self.durable_end_offset, end_offset)
        self.truncations += 1

    def truncation_point(self, diverging: EpochEndOffset) -> int:
        """Returns the offset up to which this log and the leader's may be equal."""
        own = self.epoch_end(diverging.epoch)
        if own.epoch == diverging.epoch:
            return min(own.end_offset, diverging.end_offset)
        return own.end_offset

    def take_snapshot(self, end_offset: int) -> None:
        """Replaces everything below `end_offset` by a snapshot."""
        epoch = self.at(end_offset - 1).epoch
        voters, voters_offset = self._static, -1
        if self.snapshot is not None:
            voters, voters_offset = self.snapshot.voters, self.snapshot.voters_offset
        for offset, logged in self._voters:
            if offset < end_offset:
                voters, voters_offset = logged, offset
        self.snapshot = Snapshot(SnapshotId(end_offset, epoch), voters, voters_offset)
        del self._records[: end_offset - self.start_offset]
        self._epochs = [(epoch, end_offset)] + [
            (item, start) for item, start in self._epochs if start >= end_offset
        ]
        self._voters = [item for item in self._voters if item[0] >= end_offset]
        self.start_offset = end_offset

    def replace(self, snapshot: Snapshot) -> None:
        """Replaces the whole log by a fetched snapshot."""
        self.snapshot = snapshot
        self._records.clear()
        self._voters.clear()
        self.start_offset = self.durable_end_offset = snapshot.id.end_offset
        self._epochs = [(snapshot.id.epoch, self.start_offset)]
        self.truncations += 1

    def crash(self, random: Random) -> None:
        """Loses some of the records that are not durable."""
        self.truncate(random.randint(self.durable_end_offset, self.end_offset))
        self.durable_end_offset = self.end_offset


class Disk:
    """The state that survives the end of a process."""

    def __init__(self, voters: VoterSet) -> None:
        self.state = QuorumState()
        self.log = MemoryLog(voters)
        self.flush_latency = Latency(min_ms=1, fast_ms=FAST_FLUSH_MS, in_whole_ms=True)
