"""Memory that requests and responses are received into.

All of it is mapped, because the kernel copies several times faster to the start of a page than
to the start of a large bytearray. One shared buffer serves every connection of a loop: whole
frames in it are handled before another connection receives. The bytes of an incomplete frame move
to a buffer of their own from a bounded pool. It grows with the bytes that arrive, never with the
length that a frame claims.
"""

import mmap
from contextlib import suppress

SHARED_BYTES = 1 << 20
SMALLEST_BYTES = mmap.PAGESIZE
FIRST_STEP_BYTES = 1 << 20
"""A frame's buffer starts no larger than this, whatever length the frame claims."""

_HUGE_PAGE_BYTES = 2 << 20

_MAX_PENDING_RELEASES = 64
"""Released buffers that are reused once no view of them is left; others go to the system."""

MAX_RETAINED_BUFFER_BYTES = 4 << 20
"""A larger buffer goes back to the system at once: large frames may be rare."""


class BufferPool:
    """The shared buffer and the pool.

    `limit_bytes` bounds what is in use at one time, `retained_bytes` what is kept for reuse.
    """

    __slots__ = (
        "_free",
        "_free_bytes",
        "_max_retained_buffer_bytes",
        "_pending_releases",
        "_retained_bytes",
        "limit_bytes",
        "shared",
        "used_bytes",
    )

    def __init__(
        self,
        limit_bytes: int,
        retained_bytes: int = 16 << 20,
        max_retained_buffer_bytes: int = MAX_RETAINED_BUFFER_BYTES,
    ) -> None:
        self.shared = memoryview(_map(SHARED_BYTES))
        self.limit_bytes = limit_bytes
        self.used_bytes = 0
        self._retained_bytes = retained_bytes
        self._max_retained_buffer_bytes = max_retained_buffer_bytes
        self._free: dict[int, list[mmap.mmap]] = {}
        self._free_bytes = 0
        self._pending_releases: list[mmap.mmap] = []  # released while views of them existed

    def acquire(self, size_bytes: int) -> "ReceiveBuffer":
        """Returns a buffer for `size_bytes`. Raises BuffersExhausted beyond the limit."""
        capacity = _size_class(size_bytes)
        if self.used_bytes + capacity > self.limit_bytes:
            raise BuffersExhausted(self.limit_bytes)
        self.used_bytes += capacity
        free = self._free.get(capacity)
        if free:
            self._free_bytes -= capacity
            return ReceiveBuffer(self, free.pop())
        return ReceiveBuffer(self, self._returned(capacity) or _map(capacity))

    def grow(self, memory: mmap.mmap, size_bytes: int) -> mmap.mmap:
        """Returns the same bytes with more capacity; the kernel moves pages where it can."""
        before, capacity = len(memory), _size_class(size_bytes)
        if self.used_bytes + capacity - before > self.limit_bytes:
            raise BuffersExhausted(self.limit_bytes)
        self.used_bytes += capacity - before
        try:
            memory.resize(capacity)
        except BufferError:
            # A delayed request still refers to the old memory, and keeps it.
            larger = _map(capacity)
            larger[:before] = memory[:]
            return larger
        _prefer_huge_pages(memory)
        return memory

    def release(self, memory: mmap.mmap) -> None:
        capacity = len(memory)
        self.used_bytes -= capacity
        if (
            capacity <= self._max_retained_buffer_bytes
            and self._free_bytes + capacity <= self._retained_bytes
        ):
            self._free_bytes += capacity
            self._free.setdefault(capacity, []).append(memory)
        # Else the last reference to it unmaps it.

    def release_when_unused(self, memory: mmap.mmap) -> None:
        """Releases memory that still has views; it is reused once they are gone."""
        self.used_bytes -= len(memory)
        if len(memory) <= self._max_retained_buffer_bytes:
            self._pending_releases.append(memory)
            del self._pending_releases[:-_MAX_PENDING_RELEASES]

    def _returned(self, capacity: int) -> mmap.mmap | None:
        """Returns released memory of that size that has no views any more."""
        for position, memory in enumerate(self._pending_releases):
            if len(memory) == capacity and not _has_views(memory):
                return self._pending_releases.pop(position)
        return None


class BuffersExhausted(Exception):  # noqa: N818 - a bound that was reached, not a fault
    """Too many requests are being received at once."""

    def __init__(self, limit_bytes: int) -> None:
        super().__init__(
            f"requests being received hold {limit_bytes} bytes already (queued.max.request.bytes)"
        )


class ReceiveBuffer:
    """The bytes of an incomplete frame of one connection: `view[:filled]`."""

    __slots__ = ("_buffers", "_memory", "filled", "view")

    def __init__(self, buffers: BufferPool, memory: mmap.mmap) -> None:
        self._buffers = buffers
        self._memory = memory
        self.view = memoryview(memory)
        self.filled = 0

    def append(self, received: memoryview) -> None:
        """Appends received bytes."""
        end = self.filled + len(received)
        if end > len(self.view):
            self._grow(end)
        self.view[self.filled : end] = received
        self.filled = end

    def consume(self, count: int) -> None:
        """Drops the first bytes and moves the rest to the front."""
        rest = self.filled - count
        self.view[:rest] = self.view[count : self.filled]
        self.filled = rest

    def reserve(self, size_bytes: int) -> None:
        """Grows to `size_bytes`, in steps."""
        capacity = len(self.view)
        target = min(size_bytes, max(FIRST_STEP_BYTES, 2 * capacity))
        if target > capacity:
            self._grow(target)

    def release(self) -> None:
        """Returns the memory to the pool. No views of it may be left: their bytes will change."""
        self.view.release()
        self._buffers.release(self._memory)

    def release_when_unused(self) -> None:
        """Returns the memory to the pool, now or once no view of it is left."""
        self.view.release()
        if _has_views(self._memory):
            self._buffers.release_when_unused(self._memory)
        else:
            self._buffers.release(self._memory)

    @property
    def is_referenced(self) -> bool:
        """Whether there are other views of these bytes."""
        self.view.release()
        has_views = _has_views(self._memory)
        self.view = memoryview(self._memory)
        return has_views

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
    """Filling new memory then costs an eighth: the first touch of each page is what is slow."""
    if len(memory) >= _HUGE_PAGE_BYTES:
        with suppress(OSError):  # a kernel without them
            memory.madvise(mmap.MADV_HUGEPAGE)


def _has_views(memory: mmap.mmap) -> bool:
    """Whether there are views of the memory: Python refuses to resize exported memory."""
    try:
        memory.resize(len(memory))
    except BufferError:
        return True
    return False


def _size_class(size_bytes: int) -> int:
    return max(SMALLEST_BYTES, 1 << (size_bytes - 1).bit_length())
