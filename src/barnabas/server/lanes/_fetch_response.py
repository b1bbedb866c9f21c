# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
"""Writes the response of a plain fetch: small records are read into it, large ones are regions of
their files."""

from __future__ import annotations

from barnabas.log.segments.page_cache import read_cached_into
from barnabas.server.lanes._fetch_request import PartitionRead, PlainFetchRequest

try:
    import cython

    if not cython.compiled:  # Cython's own stand-in for itself is many times slower than ours
        raise ImportError
except ImportError:
    from barnabas.wire.records import _uncompiled as cython

if cython.compiled:
    Size = cython.typedef(cython.Py_ssize_t)

_NO_SESSION = 0

_MAX_COPIED_BYTES = 64 << 10
"""Up to this size of all records, reading them costs less than sending them from their files."""


@cython.final
@cython.freelist(8)
@cython.cclass
class FetchResponseWriter:
    """Writes the body of a response. See `_fetch_response.pxd`."""

    def __init__(self, request: PlainFetchRequest, sink):
        self.sink = sink
        self.version = request.version
        self.is_flexible = request.is_flexible
        self.by_id = request.by_id
        self.session_id = _NO_SESSION
        if request.session is not None:
            self.session_id = request.session.session_id

    def measure(self, reads):
        """Returns the size of a response with these partitions, without reading their records."""
        self.write_topics(reads, False)
        size_bytes: Size = self.sink.position
        read: PartitionRead
        for read in reads:
            size_bytes += read.size_bytes
        return size_bytes

    def write(self, reads):
        """Writes the body of the response."""
        size_bytes: Size = 0
        read: PartitionRead
        for read in reads:
            size_bytes += read.size_bytes
        self.write_topics(reads, size_bytes <= _MAX_COPIED_BYTES)

    def write_topics(self, reads, is_copied):
        sink, is_flexible = self.sink, self.is_flexible
        topics: list = []  # of the reads of each topic
        name: object = None
        read: PartitionRead
        for read in reads:
            if read.name != name:
                name = read.name
                partitions: list = []
                topics.append(partitions)
            partitions.append(read)
        sink.int32(0)  # throttle time
        if self.version >= 7:
            sink.int16(0)
            sink.int32(self.session_id)
        sink.length(len(topics), is_flexible)
        for partitions in topics:
            read = partitions[0]
            if self.by_id:
                sink.raw(read.name)
            else:
                sink.string(read.name, is_flexible)
            sink.length(len(partitions), is_flexible)
            for read in partitions:
                self.write_partition(read, is_copied)
            if is_flexible:
                sink.int8(0)
        if is_flexible:
            sink.int8(0)

    def write_partition(self, read, is_copied):
        sink, is_flexible = self.sink, self.is_flexible
        sink.int32(read.index)
        sink.int16(0)
        sink.int64(read.high_watermark)
        sink.int64(read.stable_offset)
        if self.version >= 5:
            sink.int64(read.start_offset)
        aborted: list = read.aborted_transactions
        sink.length(-1 if aborted is None else len(aborted), is_flexible)
        if aborted:
            for producer_id, first_offset in aborted:
                sink.int64(producer_id)
                sink.int64(first_offset)
                if is_flexible:
                    sink.int8(0)
        if self.version >= 11:
            sink.int32(-1)  # preferred read replica
        size: Size = read.size_bytes
        sink.length(size, is_flexible)
        if size:
            at: Size = sink.position
            records = read.records
            if not is_copied or not read_cached_into(
                records.file.fd, sink.window(size), records.position
            ):
                sink.position = at
                sink.region(records)
        if is_flexible:
            sink.int8(0)
