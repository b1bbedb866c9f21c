"""The result of a read: whole batches of a segment file that are not read yet."""

import os
import socket

from barnabas.log.segments.open_files import OpenFile


class LogSlice:
    """Bytes `position` to `position + size_bytes` of a file, sent without being copied.

    `first_offset` is the requested offset; the first batch may begin before it. `next_offset` is
    where the next read continues.
    """

    __slots__ = ("file", "first_offset", "next_offset", "position", "size_bytes")

    def __init__(
        self, file: OpenFile, position: int, size_bytes: int, first_offset: int, next_offset: int
    ) -> None:
        self.file = file
        self.position = position
        self.size_bytes = size_bytes
        self.first_offset = first_offset
        self.next_offset = next_offset

    def __len__(self) -> int:
        return self.size_bytes

    def read(self) -> bytes:
        """Reads the bytes, where they are few or sendfile cannot be used."""
        content = os.pread(self.file.fd, self.size_bytes, self.position)
        if len(content) != self.size_bytes:
            raise EOFError(f"only {len(content)} of {self.size_bytes} bytes of a segment exist")
        return content

    def send(self, to: socket.socket, sent: int, count: int) -> int:
        """Sends up to `count` bytes after the first `sent`; returns how many were sent."""
        return os.sendfile(to.fileno(), self.file.fd, self.position + sent, count)
