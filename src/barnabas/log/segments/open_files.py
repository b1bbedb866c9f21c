"""Open files and maps, bounded for the whole process.

The owner of a file holds its handle. `OpenFiles` evicts a handle that was not used recently when
there are too many. A handle closes with its last reference, so a response that is being sent keeps
its file open even when the segment is deleted.
"""

import mmap
import os
import resource
from collections import OrderedDict
from typing import Protocol, TypeAlias

from barnabas.log._append import OpenFile as OpenFile


class OpenFiles:
    """A second-chance cache: a use costs one store, and eviction skips what was used since.

    The kernel evicts pages too. What a map showed in an earlier `generation` may be on disk only.
    """

    __slots__ = ("_handles", "generation", "limit")

    def __init__(self, limit: int | None = None) -> None:
        self.limit = limit or default_limit()
        self.generation = 0
        self._handles: OrderedDict[Handle, HandleOwner] = OrderedDict()

    def __len__(self) -> int:
        return len(self._handles)

    def open(self, owner: "HandleOwner", path: str) -> "OpenFile":
        """Opens a file for reading and writing; creates it if it is missing."""
        self._evict()
        file = self.wrap_descriptor(path, os.open(path, _READ_WRITE, 0o644))
        self._handles[file] = owner
        owner.handle = file
        return file

    def wrap_descriptor(self, path: str, fd: int) -> "OpenFile":
        """Returns the handle of an open descriptor; a simulated disk returns its own kind."""
        return OpenFile(fd)

    def map(self, owner: "HandleOwner", path: str) -> "OpenMap":
        """Maps a file for reading; it must not be empty."""
        self._evict()
        fd = os.open(path, _READ)
        try:
            mapped = OpenMap(mmap.mmap(fd, 0, prot=mmap.PROT_READ))
        finally:
            os.close(fd)
        self._handles[mapped] = owner
        owner.handle = mapped
        return mapped

    def release(self, owner: "HandleOwner") -> None:
        """The owner no longer needs its handle."""
        if owner.handle is not None:
            self._handles.pop(owner.handle, None)
            owner.handle = None

    def _evict(self) -> None:
        while len(self._handles) >= self.limit:
            handle, owner = self._handles.popitem(last=False)
            if handle.used:
                handle.used = False
                self._handles[handle] = owner
            else:
                owner.handle = None


class OpenMap:
    """A mapped file, which is unmapped with the last reference to this object."""

    __slots__ = ("used", "view")

    def __init__(self, view: mmap.mmap | bytes) -> None:
        self.view = view
        self.used = False


Handle: TypeAlias = OpenFile | OpenMap


class HandleOwner(Protocol):
    """Keeps a handle until it is evicted."""

    handle: Handle | None


def default_limit() -> int:
    """Returns half of what the process may open; the other half is for sockets."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return max(64, min(soft, 1 << 16) // 2)


_READ = os.O_RDONLY | os.O_CLOEXEC
_READ_WRITE = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
