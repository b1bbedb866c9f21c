"""Open files and maps, bounded for the whole process.

Whoever reads or writes a file holds the handle; the set only remembers it, and lets the one go
that was not used for longest when there are too many. A handle closes when its last holder
lets go, so an answer that is being sent keeps its file even when the segment is deleted.
"""

import mmap
import os
import resource
from collections import OrderedDict
from typing import Protocol, TypeAlias

from barnabas.wire.records.batch import Readable


class OpenFiles:
    """The second-chance set: a use costs one store, an eviction passes over what was used."""

    __slots__ = ("_handles", "limit")

    def __init__(self, limit: int | None = None) -> None:
        self.limit = limit or default_limit()
        self._handles: OrderedDict[Handle, HandleOwner] = OrderedDict()

    def __len__(self) -> int:
        return len(self._handles)

    def open(self, holder: "HandleOwner", path: str) -> "OpenFile":
        """The file for reading and writing, made if it is missing."""
        self._evict()
        file = self.wrap_descriptor(path, os.open(path, _READ_WRITE, 0o644))
        self._handles[file] = holder
        holder.handle = file
        return file

    def wrap_descriptor(self, path: str, fd: int) -> "OpenFile":
        """What reads and writes an open file; a disk that can fail on order has its own kind."""
        return OpenFile(fd)

    def map(self, holder: "HandleOwner", path: str) -> "OpenMap":
        """The file mapped for reading; it must not be empty."""
        self._evict()
        fd = os.open(path, _READ)
        try:
            mapped = OpenMap(mmap.mmap(fd, 0, prot=mmap.PROT_READ))
        finally:
            os.close(fd)
        self._handles[mapped] = holder
        holder.handle = mapped
        return mapped

    def release(self, holder: "HandleOwner") -> None:
        """The holder is done with its handle."""
        if holder.handle is not None:
            self._handles.pop(holder.handle, None)
            holder.handle = None

    def _evict(self) -> None:
        while len(self._handles) >= self.limit:
            handle, holder = self._handles.popitem(last=False)
            if handle.used:
                handle.used = False
                self._handles[handle] = holder
            else:
                holder.handle = None


class OpenFile:
    """A descriptor that is closed with the last reference to it."""

    __slots__ = ("fd", "used")

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self.used = False

    def write(self, piece: Readable, position: int) -> int:
        """How many of the bytes were taken: mostly all."""
        return os.pwrite(self.fd, piece, position)

    def __del__(self) -> None:
        os.close(self.fd)


class OpenMap:
    """A mapped file; the map has a descriptor of its own and drops it with the last reference."""

    __slots__ = ("used", "view")

    def __init__(self, view: mmap.mmap) -> None:
        self.view = view
        self.used = False


Handle: TypeAlias = OpenFile | OpenMap


class HandleOwner(Protocol):
    """Something that keeps a handle until it is told to do without."""

    handle: Handle | None


def default_limit() -> int:
    """Half of what the process may open; the other half is for sockets."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return max(64, min(soft, 1 << 16) // 2)


_READ = os.O_RDONLY | os.O_CLOEXEC
_READ_WRITE = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
