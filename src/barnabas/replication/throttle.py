"""Replication throttles (KIP-73): how many bytes a second some replicas may cost.

A topic names the throttled replicas (`*.replication.throttled.replicas`), a broker the rate that
they share (`*.replication.throttled.rate`). The leader's and the follower's side each have a
throttle:

    if not in_sync and throttle.holds_back(topic, index, now_ms):
        ...                                             # leave the partition out of this fetch
    throttle.record(topic, index, size_bytes, now_ms)   # what was sent or received

An in-sync replica is never throttled, or it would fall out of the ISR; its bytes count.
"""

from collections import deque
from collections.abc import Iterable
from enum import StrEnum

from barnabas.metadata.states import ConfigResource
from barnabas.replication.topic_config import BROKER, TOPIC, ConfigProvider

_EVERY_REPLICA = ("*",)


class ThrottleSide(StrEnum):
    """The side of replication that a throttle limits."""

    LEADER = "leader"
    FOLLOWER = "follower"


class ReplicationThrottle:
    """The throttled replicas of this broker on one side of replication, and their quota."""

    __slots__ = ("_indexes", "_node_id", "_rate_setting", "_replicas_setting", "_settings", "quota")

    def __init__(self, side: ThrottleSide, node_id: int, settings: ConfigProvider) -> None:
        self._node_id = node_id
        self._settings = settings
        self._rate_setting = f"{side}.replication.throttled.rate"
        self._replicas_setting = f"{side}.replication.throttled.replicas"
        self._indexes: dict[str, frozenset[int] | None] = {}  # by topic; None: every partition
        self.quota = ReplicationQuota(
            settings.broker(self._rate_setting),
            windows=settings.broker("replication.quota.window.num"),
            window_ms=settings.broker("replication.quota.window.size.seconds") * 1000,
        )

    def __bool__(self) -> bool:
        """Whether any replica is throttled: callers skip the other checks if not."""
        return bool(self._indexes)

    def apply_configs(self, changed: Iterable[ConfigResource]) -> None:
        """Applies the settings of changed resources; at the start, of all that have any."""
        for resource_type, name in changed:
            if resource_type == TOPIC:
                self._read_topic(name)
            elif resource_type == BROKER:
                self.quota.bytes_per_second = self._settings.broker(self._rate_setting)

    def is_throttled(self, topic: str, index: int) -> bool:
        """Returns whether the bytes of this partition count against the quota."""
        if topic not in self._indexes:
            return False
        indexes = self._indexes[topic]
        return indexes is None or index in indexes

    def is_over_quota(self, topic: str, index: int, now_ms: int) -> bool:
        """Returns whether an out-of-sync replica of this partition must wait."""
        return self.is_throttled(topic, index) and self.quota.is_exceeded(now_ms)

    def record(self, topic: str, index: int, size_bytes: int, now_ms: int) -> None:
        """Records bytes of a partition, whether the replica is in sync or not."""
        if self.is_throttled(topic, index):
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


class ReplicationQuota:
    """A rate, measured over a sliding sequence of time windows."""

    __slots__ = ("_measured_bytes", "_window_ms", "_windows", "_windows_seen", "bytes_per_second")

    def __init__(self, bytes_per_second: int, *, windows: int, window_ms: int) -> None:
        self.bytes_per_second = bytes_per_second
        self._windows = windows
        self._window_ms = window_ms
        self._windows_seen: deque[tuple[int, int]] = deque()  # when a window began, and its bytes
        self._measured_bytes = 0

    def record(self, size_bytes: int, now_ms: int) -> None:
        seen = self._windows_seen
        if seen and now_ms - seen[-1][0] < self._window_ms:
            began_ms, bytes_before = seen[-1]
            seen[-1] = (began_ms, bytes_before + size_bytes)
        else:
            seen.append((now_ms, size_bytes))
        self._measured_bytes += size_bytes

    def is_exceeded(self, now_ms: int) -> bool:
        return self.rate(now_ms) > self.bytes_per_second

    def rate(self, now_ms: int) -> float:
        """Returns bytes per second since the oldest window began, over one window at least."""
        seen = self._windows_seen
        oldest_ms = now_ms - self._windows * self._window_ms
        while seen and seen[0][0] <= oldest_ms:
            self._measured_bytes -= seen.popleft()[1]
        if not seen:
            return 0.0
        return self._measured_bytes * 1000 / max(now_ms - seen[0][0], self._window_ms)

    def ms_until_within_quota(self, now_ms: int) -> int:
        """Returns after how long to check again; 0 if the quota is not exceeded."""
        if not self.is_exceeded(now_ms):
            return 0
        if self.bytes_per_second <= 0:
            return self._window_ms
        # If nothing is added, the rate falls as the measured time grows.
        within_quota_ms = (
            self._windows_seen[0][0] + self._measured_bytes * 1000 // self.bytes_per_second
        )
        oldest_ends_ms = self._windows_seen[0][0] + self._windows * self._window_ms
        return max(min(within_quota_ms + 1, oldest_ends_ms) - now_ms, 1)


def _indexes_of(replicas: Iterable[str], node_id: int) -> Iterable[int]:
    for replica in replicas:
        index, _, broker_id = replica.partition(":")
        if int(broker_id) == node_id:
            yield int(index)
