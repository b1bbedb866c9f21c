"""Replication throttles (KIP-73): how many bytes a second some replicas may cost.

A topic names the replicas that are held back (`*.replication.throttled.replicas`), a broker the
rate that they share (`*.replication.throttled.rate`). The leader's side and the follower's each
have a throttle of their own:

    if not in_sync and throttle.holds_back(topic, index, now_ms):
        ...                                             # leave the partition out this time
    throttle.record(topic, index, size_bytes, now_ms)   # what went over the wire regardless

A replica in sync is never held back, or the throttle would drive it out; its bytes count.
"""

from collections import deque
from collections.abc import Iterable
from enum import StrEnum

from barnabas.metadata.states import ConfigResource
from barnabas.replication.topic_config import BROKER, TOPIC, Settings

_EVERY_REPLICA = ("*",)


class Side(StrEnum):
    """Whose throttle it is."""

    LEADER = "leader"
    FOLLOWER = "follower"


class Throttle:
    """The throttled replicas of this broker on one side of replication, and their quota."""

    __slots__ = ("_indexes", "_node_id", "_rate_setting", "_replicas_setting", "_settings", "quota")

    def __init__(self, side: Side, node_id: int, settings: Settings) -> None:
        self._node_id = node_id
        self._settings = settings
        self._rate_setting = f"{side}.replication.throttled.rate"
        self._replicas_setting = f"{side}.replication.throttled.replicas"
        self._indexes: dict[str, frozenset[int] | None] = {}  # by topic; None: every partition
        self.quota = Quota(
            settings.broker(self._rate_setting),
            windows=settings.broker("replication.quota.window.num"),
            window_ms=settings.broker("replication.quota.window.size.seconds") * 1000,
        )

    def __bool__(self) -> bool:
        """Whether anything is throttled: while it is false, nothing else need be asked."""
        return bool(self._indexes)

    def obey(self, changed: Iterable[ConfigResource]) -> None:
        """These resources have new settings; at the start, all that have any."""
        for resource_type, name in changed:
            if resource_type == TOPIC:
                self._read_topic(name)
            elif resource_type == BROKER:
                self.quota.bytes_per_second = self._settings.broker(self._rate_setting)

    def covers(self, topic: str, index: int) -> bool:
        """Whether the bytes of this partition count against the quota."""
        if topic not in self._indexes:
            return False
        indexes = self._indexes[topic]
        return indexes is None or index in indexes

    def holds_back(self, topic: str, index: int, now_ms: int) -> bool:
        """Whether a replica of this partition that is not in sync must wait."""
        return self.covers(topic, index) and self.quota.is_exceeded(now_ms)

    def record(self, topic: str, index: int, size_bytes: int, now_ms: int) -> None:
        """The partition's bytes went over the wire, whether it was in sync or not."""
        if self.covers(topic, index):
            self.quota.record(size_bytes, now_ms)

    def _read_topic(self, topic: str) -> None:
        replicas: tuple[str, ...] = self._settings.topic(topic)[self._replicas_setting]
        if tuple(replicas) == _EVERY_REPLICA:
            self._indexes[topic] = None
            return
        indexes = frozenset(_indexes_of(replicas, self._node_id))
        if indexes:
            self._indexes[topic] = indexes
        else:
            self._indexes.pop(topic, None)


class Quota:
    """A rate, measured over a few windows of time of which the oldest falls away."""

    __slots__ = ("_seen", "_seen_bytes", "_window_ms", "_windows", "bytes_per_second")

    def __init__(self, bytes_per_second: int, *, windows: int, window_ms: int) -> None:
        self.bytes_per_second = bytes_per_second
        self._windows = windows
        self._window_ms = window_ms
        self._seen: deque[tuple[int, int]] = deque()  # when a window began, and its bytes
        self._seen_bytes = 0

    def record(self, size_bytes: int, now_ms: int) -> None:
        seen = self._seen
        if seen and now_ms - seen[-1][0] < self._window_ms:
            began_ms, bytes_before = seen[-1]
            seen[-1] = (began_ms, bytes_before + size_bytes)
        else:
            seen.append((now_ms, size_bytes))
        self._seen_bytes += size_bytes

    def is_exceeded(self, now_ms: int) -> bool:
        return self.rate(now_ms) > self.bytes_per_second

    def rate(self, now_ms: int) -> float:
        """Bytes a second since the oldest window began, over one window at least."""
        seen = self._seen
        oldest_ms = now_ms - self._windows * self._window_ms
        while seen and seen[0][0] <= oldest_ms:
            self._seen_bytes -= seen.popleft()[1]
        if not seen:
            return 0.0
        return self._seen_bytes * 1000 / max(now_ms - seen[0][0], self._window_ms)

    def free_in_ms(self, now_ms: int) -> int:
        """When to look again: at 0 the quota is not exceeded, later on it may not be."""
        if not self.is_exceeded(now_ms):
            return 0
        if self.bytes_per_second <= 0:
            return self._window_ms
        # If nothing is added, the rate falls as the time it is measured over grows.
        enough_ms = self._seen[0][0] + self._seen_bytes * 1000 // self.bytes_per_second
        falls_away_ms = self._seen[0][0] + self._windows * self._window_ms
        return max(min(enough_ms + 1, falls_away_ms) - now_ms, 1)


def _indexes_of(replicas: Iterable[str], node_id: int) -> Iterable[int]:
    for replica in replicas:
        index, _, broker_id = replica.partition(":")
        if int(broker_id) == node_id:
            yield int(index)
