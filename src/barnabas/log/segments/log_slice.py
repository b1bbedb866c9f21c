"""A stretch of a segment that answers a fetch: whole batches, not yet read."""

import os
import socket

from barnabas.log.segments.open_files import OpenFile


class LogSlice:
    """Bytes `position` to `position + size_bytes` of a file, sent without passing through us.

    `first_offset` is the offset that was asked for; the first batch may begin before it.
    `next_offset` is where the following read goes on.
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
        """The bytes themselves, where they are few or sendfile is of no use."""
        content = os.pread(self.file.fd, self.size_bytes, self.position)
        if len(content) != self.size_bytes:
            raise EOFError(f"{self.size_bytes} bytes of a segment, only {len(content)} are there")
        return content

    def send(self, to: socket.socket, sent: int, count: int) -> int:
        """Sends up to `count` bytes after the first `sent`; how many the socket took."""
        return os.sendfile(to.fileno(), self.file.fd, self.position + sent, count)
