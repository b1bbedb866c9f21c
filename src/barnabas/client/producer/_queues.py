# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Topics and the queues of their partitions, inside the accumulator and under its lock.

The fields of the classes are in `_queues.pxd`.
"""

from __future__ import annotations

try:
    import cython

    if not cython.compiled:  # Cython's own stand-in for itself is many times slower than ours
        raise ImportError
except ImportError:
    from barnabas.wire.records import _uncompiled as cython

if cython.compiled:
    pass

COMPILED: bool = cython.compiled

_FIRST_ROOM = cython.declare(cython.Py_ssize_t, 1 << 10)


@cython.cclass
class Queue:
    """The batches of one partition that nobody has taken yet."""

    def __init__(self, topic: str, partition: int) -> None:
        self.topic = topic
        self.partition = partition
        self.full = []
        self.open = None
        self.expected = _FIRST_ROOM
        self.is_busy = False
        self.is_shunned = False

    @property
    def place(self) -> tuple[str, int]:
        return self.topic, self.partition

    @property
    def waiting(self) -> int:
        """The batches in it."""
        return len(self.full) + (self.open is not None)

    @property
    def first_bytes(self) -> int:
        """The size of the batch that is taken first, before it is compressed."""
        if self.full:
            return self.full[0].size_bytes
        return 0 if self.open is None else self.open.size

    @cython.cfunc
    def close(self) -> cython.int:
        """The open batch takes no more."""
        if self.open is not None:
            self.expected = max(self.open.size + self.open.size // 8, _FIRST_ROOM)
            self.full.append(self.open)
            self.open = None
        return 0


@cython.cclass
class Topic:
    """A topic's partitions, and where its records without a key go at present."""

    def __init__(self, name: str, chance: Chance, now_s: float) -> None:
        self.name = name
        self.chance = chance
        self.queues = []
        self.available = []
        self.waiting = []
        self.waiting_bytes = 0
        self.since_s = now_s
        self.sticky = None
        self.sticky_bytes = 0
        self.sticky_until_ms = 0

    @cython.cfunc
    def stick(self, now_ms: cython.longlong, body: cython.Py_ssize_t) -> Queue:
        """Where the next record without a key goes, which takes so many bytes."""
        if (
            self.sticky is None
            or self.sticky_bytes >= self.chance.batch_bytes
            or now_ms >= self.sticky_until_ms
        ):
            self.sticky = self.pick()
            self.sticky_bytes = 0
            self.sticky_until_ms = now_ms + self.chance.sticky_ms
        self.sticky_bytes += body
        return self.sticky

    @cython.cfunc
    def pick(self) -> Queue:
        """By chance; if it adapts, the less likely the more batches wait there."""
        queue: Queue
        candidates: list = [queue for queue in self.available if not queue.is_shunned]
        if not candidates:
            candidates = self.available or self.queues
        if len(candidates) == 1:
            return candidates[0]
        if not self.chance.is_adaptive:
            return candidates[self.chance.next() % len(candidates)]
        longest: cython.longlong = 0
        total: cython.longlong = 0
        for queue in candidates:
            longest = max(longest, len(queue.full))
        for queue in candidates:
            total += longest + 1 - len(queue.full)
        at: cython.longlong = self.chance.next() % total
        for queue in candidates:
            at -= longest + 1 - len(queue.full)
            if at < 0:
                return queue
        return candidates[0]


@cython.cclass
class Chance:
    """How records without a key are spread (KIP-794): a batch's worth to one partition, then
    to another, and no longer than a time to any.
    """

    def __init__(self, batch_bytes: int, sticky_ms: int, is_adaptive: bool, seed: int) -> None:
        self.batch_bytes = batch_bytes
        self.sticky_ms = sticky_ms
        self.is_adaptive = is_adaptive
        self.seed = seed or 1

    @cython.cfunc
    @cython.exceptval(check=False)
    def next(self) -> cython.longlong:
        """Marsaglia's xorshift: partitions need no better chance."""
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
    """The low 64 bits, which is all that C keeps."""
    return number if cython.compiled else number & 0xFFFFFFFFFFFFFFFF
