"""Memory that requests are received into.

All of it is mapped, because the kernel copies several times faster to the start of a page than
to where a large bytearray begins. One shared buffer serves every connection of a loop: what is
whole in it is handled before anyone else receives. Bytes that have to wait for more move to a
buffer of their own from a bounded pool; it grows with what arrives, never with what is claimed.
"""

import mmap
from contextlib import suppress

SHARED_BYTES = 1 << 20
SMALLEST_BYTES = mmap.PAGESIZE
FIRST_STEP_BYTES = 1 << 20
"""A frame's buffer starts no larger than this, whatever length the frame claims."""

_HUGE_PAGE_BYTES = 2 << 20

_MOST_LENT = 64
"""Buffers that are watched for their return; others are left to whoever holds them."""

LARGEST_KEPT_BYTES = 4 << 20
"""A buffer beyond this goes back to the system at once: the next large frame may be far away."""


class Buffers:
    """The shared buffer and the pool.

    `limit_bytes` bounds what is handed out at one time, `kept_bytes` what is kept for reuse.
    """

    __slots__ = (
        "_free",
        "_free_bytes",
        "_kept_bytes",
        "_largest_kept_bytes",
        "_lent",
        "limit_bytes",
        "shared",
        "used_bytes",
    )

    def __init__(
        self,
        limit_bytes: int,
        kept_bytes: int = 16 << 20,
        largest_kept_bytes: int = LARGEST_KEPT_BYTES,
    ) -> None:
        self.shared = memoryview(_map(SHARED_BYTES))
        self.limit_bytes = limit_bytes
        self.used_bytes = 0
        self._kept_bytes = kept_bytes
        self._largest_kept_bytes = largest_kept_bytes
        self._free: dict[int, list[mmap.mmap]] = {}
        self._free_bytes = 0
        self._lent: list[mmap.mmap] = []  # somebody holds views of them, which no count knows of

    def take(self, size_bytes: int) -> "Buffer":
        """A buffer that holds at least `size_bytes`; BuffersExhausted beyond the limit."""
        capacity = _size_class(size_bytes)
        if self.used_bytes + capacity > self.limit_bytes:
            raise BuffersExhausted(self.limit_bytes)
        self.used_bytes += capacity
        free = self._free.get(capacity)
        if free:
            self._free_bytes -= capacity
            return Buffer(self, free.pop())
        return Buffer(self, self._returned(capacity) or _map(capacity))

    def grow(self, memory: mmap.mmap, size_bytes: int) -> mmap.mmap:
        """The same bytes with more room; the kernel moves pages where it can."""
        before, capacity = len(memory), _size_class(size_bytes)
        if self.used_bytes + capacity - before > self.limit_bytes:
            raise BuffersExhausted(self.limit_bytes)
        self.used_bytes += capacity - before
        try:
            memory.resize(capacity)
        except BufferError:
            # A parked request still refers to what this memory held before; it may keep it.
            larger = _map(capacity)
            larger[:before] = memory[:]
            return larger
        _prefer_huge_pages(memory)
        return memory

    def give_back(self, memory: mmap.mmap) -> None:
        capacity = len(memory)
        self.used_bytes -= capacity
        if capacity <= self._largest_kept_bytes and self._free_bytes + capacity <= self._kept_bytes:
            self._free_bytes += capacity
            self._free.setdefault(capacity, []).append(memory)
        # Else the last reference to it unmaps it.

    def lend(self, memory: mmap.mmap) -> None:
        """Leave it to whoever holds views of it; it may be used again when they are gone."""
        self.used_bytes -= len(memory)
        if len(memory) <= self._largest_kept_bytes:
            self._lent.append(memory)
            del self._lent[:-_MOST_LENT]

    def _returned(self, capacity: int) -> mmap.mmap | None:
        """Memory of that size which was lent, and of which nobody holds a view any more."""
        for place, memory in enumerate(self._lent):
            if len(memory) == capacity and not _is_held(memory):
                return self._lent.pop(place)
        return None


class BuffersExhausted(Exception):  # noqa: N818 - a bound that was reached, not a fault
    """Too many requests are being received at once."""

    def __init__(self, limit_bytes: int) -> None:
        super().__init__(
            f"requests being received hold {limit_bytes} bytes already (queued.max.request.bytes)"
        )


class Buffer:
    """Bytes of one connection that could not be handled yet: `view[:filled]`."""

    __slots__ = ("_buffers", "_memory", "filled", "view")

    def __init__(self, buffers: Buffers, memory: mmap.mmap) -> None:
        self._buffers = buffers
        self._memory = memory
        self.view = memoryview(memory)
        self.filled = 0

    def put(self, received: memoryview) -> None:
        """Add bytes that have arrived."""
        end = self.filled + len(received)
        if end > len(self.view):
            self._grow(end)
        self.view[self.filled : end] = received
        self.filled = end

    def drop(self, count: int) -> None:
        """Forget the first bytes and move the rest to the front."""
        rest = self.filled - count
        self.view[:rest] = self.view[count : self.filled]
        self.filled = rest

    def make_room(self, size_bytes: int) -> None:
        """Room for `size_bytes` in all, or for the next step on the way there."""
        capacity = len(self.view)
        target = min(size_bytes, max(FIRST_STEP_BYTES, 2 * capacity))
        if target > capacity:
            self._grow(target)

    def release(self) -> None:
        """Back to the pool. Views of it must be gone: their bytes are about to change."""
        self.view.release()
        self._buffers.give_back(self._memory)

    def let_go(self) -> None:
        """Back to the pool, now or as soon as nobody holds a view of it any more."""
        self.view.release()
        if _is_held(self._memory):
            self._buffers.lend(self._memory)
        else:
            self._buffers.give_back(self._memory)

    @property
    def is_held(self) -> bool:
        """Whether somebody else has a view of these bytes."""
        self.view.release()
        held = _is_held(self._memory)
        self.view = memoryview(self._memory)
        return held

    def _grow(self, size_bytes: int) -> None:
        self.view.release()
        self._memory = self._buffers.grow(self._memory, size_bytes)
        self.view = memoryview(self._memory)


def _map(size_bytes: int) -> mmap.mmap:
    # Private: pages that are added to a shared anonymous map by growing it cannot be touched.
    memory = mmap.mmap(-1, size_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    _prefer_huge_pages(memory)
    return memory


def _prefer_huge_pages(memory: mmap.mmap) -> None:
    """To fill new memory then costs an eighth: it is the first touch of each page that is slow."""
    if len(memory) >= _HUGE_PAGE_BYTES:
        with suppress(OSError):  # a kernel without them
            memory.madvise(mmap.MADV_HUGEPAGE)


def _is_held(memory: mmap.mmap) -> bool:
    """Whether there are views of it: Python moves no memory that somebody points to."""
    try:
        memory.resize(len(memory))
    except BufferError:
        return True
    return False


def _size_class(size_bytes: int) -> int:
    return max(SMALLEST_BYTES, 1 << (size_bytes - 1).bit_length())
