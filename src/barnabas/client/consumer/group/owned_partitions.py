"""What a member holds at its assignee, and whether its user is still there."""

from collections import deque

from barnabas.client.consumer.group.member import Assign, AssignmentChange, Lose
from barnabas.client.values import TopicPartitionTuple


class OwnedPartitions:
    """The partitions handed over so far, and the hand-overs to come, one after the other."""

    def __init__(self) -> None:
        self.owned: frozenset[TopicPartitionTuple] = frozenset()
        self._under_way: AssignmentChange | None = None
        self._planned: deque[AssignmentChange] = deque()
        self._is_lost = False

    @property
    def is_changing(self) -> bool:
        """Whether what is owned is about to be something else."""
        return self._under_way is not None or bool(self._planned) or self._is_lost

    def plan(self, hand_over: AssignmentChange) -> None:
        self._planned.append(hand_over)

    def lose_all(self) -> None:
        """All of it is somebody else's: whatever was planned, that comes next."""
        self._planned.clear()
        self._is_lost = True

    def next_change(self) -> AssignmentChange | None:
        """The next hand-over to begin, once the last is done."""
        if self._under_way is not None:
            return None
        if self._is_lost:
            self._is_lost = False
            self._under_way = Lose(self.owned) if self.owned else None
        elif self._planned:
            self._under_way = self._planned.popleft()
        return self._under_way

    def complete_change(self) -> None:
        """The hand-over under way has taken place."""
        match self._under_way:
            case Assign(partitions, incremental=True):
                self.owned |= partitions
            case Assign(partitions):
                self.owned = partitions
            case None:
                raise AssertionError("nothing is being handed over")
            case revoked_or_lost:
                self.owned -= revoked_or_lost.partitions
        self._under_way = None


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
        """Whether the user has just been found absent; said once."""
        if self.is_expired or now_ms < self.deadline_ms:
            return False
        self.is_expired = True
        return True
