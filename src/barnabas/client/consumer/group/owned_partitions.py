"""The partitions that a member owns, and the timer of the user's polls."""

from collections import deque

from barnabas.client.consumer.group.member import Assign, AssignmentChange, Lose, Revoke
from barnabas.client.values import PartitionKey


class OwnedPartitions:
    """The partitions that the user has, and the planned changes, which happen one at a time."""

    def __init__(self) -> None:
        self.partitions: frozenset[PartitionKey] = frozenset()
        self._in_progress: AssignmentChange | None = None
        self._planned: deque[AssignmentChange] = deque()
        self._are_lost = False

    @property
    def is_changing(self) -> bool:
        """Whether a change is planned or in progress."""
        return self._in_progress is not None or bool(self._planned) or self._are_lost

    def plan(self, change: AssignmentChange) -> None:
        self._planned.append(change)

    def lose_all(self) -> None:
        """Other members own all partitions: losing them is the next change, instead of others."""
        self._planned.clear()
        self._are_lost = True

    def next_change(self) -> AssignmentChange | None:
        """Starts the next change, once the last is complete, and returns it."""
        if self._in_progress is not None:
            return None
        if self._are_lost:
            self._are_lost = False
            self._in_progress = Lose(self.partitions) if self.partitions else None
        elif self._planned:
            self._in_progress = self._planned.popleft()
        return self._in_progress

    def complete_change(self) -> None:
        match self._in_progress:
            case Assign(partitions, incremental=True):
                self.partitions |= partitions
            case Assign(partitions):
                self.partitions = partitions
            case Revoke(partitions) | Lose(partitions):
                self.partitions -= partitions
            case None:
                raise AssertionError("no change is in progress")
        self._in_progress = None


class PollTimer:
    """Whether the user polls at least every max.poll.interval.ms."""

    def __init__(self, max_interval_ms: float) -> None:
        self._max_interval_ms = max_interval_ms
        self.is_expired = False
        self.deadline_ms = 0.0

    def reset(self, now_ms: float) -> None:
        self.is_expired = False
        self.deadline_ms = now_ms + self._max_interval_ms

    def expire(self, now_ms: float) -> bool:
        """Expires the timer if it is due; returns True only when it expires."""
        if self.is_expired or now_ms < self.deadline_ms:
            return False
        self.is_expired = True
        return True
