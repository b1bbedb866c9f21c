# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
"""Walking over the batches of a segment: compiled with C types, or run as the Python it is.

Recovery checks every batch past the recovery point, and there may be millions of them. The walk
makes Python objects only for the few batches that recovery has to look at.
"""

from __future__ import annotations

from barnabas.wire.records.batch import (
    CONTROL_BIT,
    CRC_END,
    HEADER_BYTES,
    LENGTH_END,
    MAGIC,
    MAGIC_AT,
    TRANSACTIONAL_BIT,
)
from barnabas.wire.records.checksum import crc32c

try:
    import cython

    if not cython.compiled:  # Cython's own stand-in for itself is many times slower than ours
        raise ImportError
except ImportError:
    from barnabas.wire.records import _uncompiled as cython

if cython.compiled:
    Data = cython.typedef(cython.pointer[cython.const[cython.uchar]])
    Size = cython.typedef(cython.Py_ssize_t)
    Long = cython.typedef(cython.longlong)

_BATCHES_PER_PRODUCER: Size = 5


@cython.final
@cython.cclass
class BatchWalk:
    """Walks over the batches of one segment, a buffer at a time. `_batch_walk.pxd` has its fields.

    The totals include all batches so far. The lists are those of the last buffer:

    - `index_entries`: last offset and position of a batch, and the largest timestamp so far with
      the last offset of its batch
    - `leader_epochs`: each epoch that is larger than all before, and the first offset of its batch
    - `producer_batches`: where in the buffer the batches begin that determine the state of
      idempotent producers. In a long run of batches of one producer most have no effect.
    """

    def __init__(
        self,
        position: Size,
        next_offset: Long,
        max_offset: Long,
        unindexed_bytes: Long,
        index_interval_bytes: Long,
        max_timestamp: Long,
        offset_of_max_timestamp: Long,
        leader_epoch: Long,
    ) -> None:
        self.position = position
        self.next_offset = next_offset
        self.max_offset = max_offset
        self.unindexed_bytes = unindexed_bytes
        self.index_interval_bytes = index_interval_bytes
        self.max_timestamp = max_timestamp
        self.offset_of_max_timestamp = offset_of_max_timestamp
        self.leader_epoch = leader_epoch

    def walk(self, view: memoryview) -> int:
        """Returns the end of the batches in the buffer that are whole, valid and in order."""
        buffer: cython.const[cython.uchar][::1] = view
        data: Data = cython.address(buffer[0]) if cython.compiled else buffer
        header_bytes: Size = HEADER_BYTES
        not_in_length: Size = LENGTH_END
        not_in_crc: Size = CRC_END
        magic: cython.uchar = MAGIC
        end: Size = len(buffer)
        at: Size = 0
        size: Size
        base_offset: Long
        delta: Long
        timestamp: Long
        self.index_entries = []
        self.leader_epochs = []
        self.producer_batches = []
        self.runs = {}
        while end - at >= header_bytes:
            size = _integer(data, at + 8, 4) + not_in_length
            base_offset = _integer(data, at, 8)
            delta = _integer(data, at + 23, 4)
            if (
                data[at + MAGIC_AT] != magic
                or size < header_bytes
                or size > end - at
                or delta < 0
                or base_offset < self.next_offset
                or base_offset > self.max_offset - delta
                or crc32c(view[at + not_in_crc : at + size])
                != _integer(data, at + 17, 4) & 0xFFFFFFFF
            ):
                break
            self.next_offset = base_offset + delta + 1
            timestamp = _integer(data, at + 35, 8)
            if timestamp > self.max_timestamp:
                self.max_timestamp = timestamp
                self.offset_of_max_timestamp = base_offset + delta
            if self.unindexed_bytes > self.index_interval_bytes:
                self.index_entries.append(
                    (
                        base_offset + delta,
                        self.position,
                        self.max_timestamp,
                        self.offset_of_max_timestamp,
                    )
                )
                self.unindexed_bytes = 0
            if _integer(data, at + 12, 4) > self.leader_epoch:
                self.leader_epoch = _integer(data, at + 12, 4)
                self.leader_epochs.append((self.leader_epoch, base_offset))
            if _integer(data, at + 43, 8) >= 0:
                self._add_producer_batch(at, _integer(data, at + 43, 8), data[at + 22])
            self.unindexed_bytes += size
            self.position += size
            at += size
        for run in self.runs.values():
            self.producer_batches += run[1:]
        self.producer_batches.sort()
        return at

    @cython.cfunc
    def _add_producer_batch(self, at: Size, producer_id: Long, attributes: cython.int):
        """Adds a batch, and drops one that has no effect after it.

        A run has the position of its first batch, which may open a transaction, and those of its
        last five.
        """
        is_transactional: cython.bint = attributes & TRANSACTIONAL_BIT != 0
        if attributes & CONTROL_BIT:
            self.producer_batches += self.runs.pop(producer_id, ())[1:]
            self.producer_batches.append(at)
            return
        run: list = self.runs.get(producer_id)
        if run is None or run[0] != is_transactional:
            if run is not None:
                self.producer_batches += run[1:]
            self.runs[producer_id] = [is_transactional, at]
            return
        if len(run) == 2 + _BATCHES_PER_PRODUCER:
            del run[2]
        run.append(at)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _integer(data: Data, position: Size, size: cython.int) -> Long:
    """Returns the signed big-endian integer of that size."""
    if not cython.compiled:
        return int.from_bytes(data[position : position + size], signed=True)
    value: Long = data[position] - ((data[position] & 0x80) << 1)
    index: cython.int
    for index in range(1, size):
        value = value * 256 + data[position + index]  # a negative number must not be shifted
    return value
