# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""The queues of partitions inside the record accumulator, under its lock.

The fields of the classes are in `_queues.pxd`.
"""

from __future__ import annotations

try:
    import cython

    if not cython.compiled:  # Cython's own pure-Python shim is many times slower than ours
        raise ImportError
except ImportError:
    from barnabas.wire.records import _uncompiled as cython

COMPILED: bool = cython.compiled

_INITIAL_BUFFER_BYTES = cython.declare(cython.Py_ssize_t, 1 << 10)


@cython.cclass
class PartitionQueue:
    """The batches of one partition that the sender has not taken yet."""

    def __init__(self, topic: str, partition: int) -> None:
        self.topic = topic
        self.partition = partition
        self.full = []
        self.open = None
        self.next_buffer_bytes = _INITIAL_BUFFER_BYTES
        self.is_active = False
        self.is_unavailable = False

    @property
    def topic_partition(self) -> tuple[str, int]:
        return self.topic, self.partition

    @property
    def first_batch_bytes(self) -> int:
        """The size of the first batch, before compression."""
        if self.full:
            return self.full[0].size_bytes
        return 0 if self.open is None else self.open.size_bytes

    @cython.cfunc
    def close_for_appends(self) -> cython.int:
        """Closes the open batch: it takes no more records."""
        if self.open is not None:
            expected: cython.Py_ssize_t = self.open.size_bytes + self.open.size_bytes // 8
            self.next_buffer_bytes = max(expected, _INITIAL_BUFFER_BYTES)
            self.full.append(self.open)
            self.open = None
        return 0


@cython.cclass
class TopicQueues:
    """The queues of a topic's partitions, and the current one for records without a key."""

    def __init__(self, name: str, partitioner: StickyPartitioner, now_s: float) -> None:
        self.name = name
        self.partitioner = partitioner
        self.queues = []
        self.available = []
        self.waiting = []
        self.waiting_bytes = 0
        self.waiting_since_s = now_s
        self.sticky = None
        self.sticky_bytes = 0
        self.sticky_until_ms = 0

    @cython.cfunc
    def next_sticky(self, now_ms: cython.longlong, body: cython.Py_ssize_t) -> PartitionQueue:
        """Returns the queue for the next record without a key, whose size is `body`."""
        if (
            self.sticky is None
            or self.sticky_bytes >= self.partitioner.batch_bytes
            or now_ms >= self.sticky_until_ms
        ):
            self.sticky = self.pick_queue()
            self.sticky_bytes = 0
            self.sticky_until_ms = now_ms + self.partitioner.sticky_ms
        self.sticky_bytes += body
        return self.sticky

    @cython.cfunc
    def pick_queue(self) -> PartitionQueue:
        """Picks a queue at random; if adaptive, with less probability the more batches it has."""
        queue: PartitionQueue
        candidates: list = [queue for queue in self.available if not queue.is_unavailable]
        if not candidates:
            candidates = self.available or self.queues
        if len(candidates) == 1:
            return candidates[0]
        if not self.partitioner.is_adaptive:
            return candidates[self.partitioner.random() % len(candidates)]
        longest: cython.longlong = 0
        total: cython.longlong = 0
        for queue in candidates:
            longest = max(longest, len(queue.full))
        for queue in candidates:
            total += longest + 1 - len(queue.full)
        point: cython.longlong = self.partitioner.random() % total
        for queue in candidates:
            point -= longest + 1 - len(queue.full)
            if point < 0:
                return queue
        return candidates[0]


@cython.cclass
class StickyPartitioner:
    """Settings and random numbers of the built-in partitioner (KIP-794), for all topics.

    Records without a key go to one partition until they fill a batch or a time has passed, then to
    another.
    """

    def __init__(self, batch_bytes: int, sticky_ms: int, is_adaptive: bool, seed: int) -> None:
        self.batch_bytes = batch_bytes
        self.sticky_ms = sticky_ms
        self.is_adaptive = is_adaptive
        self.seed = seed or 1

    @cython.cfunc
    @cython.exceptval(check=False)
    def random(self) -> cython.longlong:
        """Marsaglia's xorshift: good enough to choose partitions."""
        seed: cython.ulonglong = self.seed
        seed ^= _low(seed << 13)
        seed ^= seed >> 7
        seed ^= _low(seed << 17)
        self.seed = seed
        return seed >> 1


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _low(number: cython.ulonglong) -> cython.ulonglong:
    """The low 64 bits, which C keeps by itself."""
    return number if cython.compiled else number & 0xFFFFFFFFFFFFFFFF
