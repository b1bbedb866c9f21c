# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
"""What every append of a leader reads and changes.

The classes of a log extend the ones here: `Log` extends `LogEnd`, `LogSegment` extends
`SegmentEnd`, `ProducerStateManager` extends `ProducerEntries`. In their fields a compiled caller
finds everything that a plain append needs. What is not plain is declined, and `Log` does it.
"""

from __future__ import annotations

import errno
import os

from barnabas.log.errors import TornWrite, log_dir_failure
from barnabas.log.producers.batch_metadata import BatchMetadata
from barnabas.wire.records._validation import ValidBatch
from barnabas.wire.records.batch import (
    CONTROL_BIT,
    MAX_SEQUENCE,
    NO_PRODUCER_EPOCH,
    NO_SEQUENCE,
    TRANSACTIONAL_BIT,
)

try:
    import cython

    if not cython.compiled:  # Cython's own stand-in for itself is many times slower than ours
        raise ImportError
except ImportError:
    from barnabas.wire.records import _uncompiled as cython

if cython.compiled:
    Size = cython.typedef(cython.Py_ssize_t)
    Long = cython.typedef(cython.longlong)

NOT_PLAIN = -1
"""What `append_plain` returns if it has changed nothing, and the caller has to append."""

NO_TRANSACTION = -1
UNKNOWN_TIMESTAMP = -2

_BATCHES_PER_PRODUCER = 5
_MAX_RELATIVE_OFFSET = cython.declare(cython.longlong, 0x7FFFFFFF)
_CONTROL_BIT = cython.declare(cython.longlong, CONTROL_BIT)
_TRANSACTIONAL_BIT = cython.declare(cython.longlong, TRANSACTIONAL_BIT)
_MAX_SEQUENCE = cython.declare(cython.longlong, MAX_SEQUENCE)
_NO_SEQUENCE = cython.declare(cython.longlong, NO_SEQUENCE)


@cython.cclass
class OpenFile:
    """A descriptor that is closed with the last reference to this object."""

    def __init__(self, fd):
        self.fd = fd
        self.used = False

    def write(self, piece, position):
        """Returns how many bytes were written: nearly always all."""
        return os.pwrite(self.fd, piece, position)

    def __del__(self):
        os.close(self.fd)


@cython.cclass
class SegmentEnd:
    """The end of a segment, where batches are appended."""

    def __init__(self, base_offset, index_interval_bytes, size_bytes):
        self.base_offset = base_offset
        self.next_offset = base_offset
        self.size_bytes = size_bytes
        self.index_interval_bytes = index_interval_bytes
        self.unindexed_bytes = 0
        self.first_timestamp = UNKNOWN_TIMESTAMP
        self.max_timestamp = UNKNOWN_TIMESTAMP
        self.offset_of_max_timestamp = base_offset
        self.handle = None
        self.forget_limits()

    def append(self, batch, size_bytes):
        """Writes bytes after the last batch, all or none; `on_batch_written` counts them."""
        file: object = self.handle
        if isinstance(file, OpenFile):
            file.used = True
        else:
            file = self.file()
        try:
            written: Size = file.write(batch, self.size_bytes)
            if written != size_bytes:
                self.write_rest(file, batch, written)
        except OSError as error:
            self.undo_write(file.fd, error)
            raise

    def write_rest(self, file, batch, written):
        with memoryview(batch) as view:
            while written < len(view):
                count = file.write(view[written:], self.size_bytes + written)
                if count == 0:
                    raise OSError(errno.ENOSPC, "the disk accepts no more bytes")
                written += count

    def undo_write(self, fd, cause):
        try:
            os.ftruncate(fd, self.size_bytes)
        except OSError as error:
            raise TornWrite(cause.errno, f"{cause.strerror}, and then {error}") from cause

    def on_batch_written(self, size_bytes, last_offset, max_timestamp):
        """Counts a batch that was written after the last one."""
        if max_timestamp > self.max_timestamp:
            self.max_timestamp = max_timestamp
            self.offset_of_max_timestamp = last_offset
        if self.unindexed_bytes > self.index_interval_bytes:
            self.add_index_entries(last_offset)
            self.unindexed_bytes = 0
            self.free_index_entries -= 1
        self.unindexed_bytes += size_bytes
        self.size_bytes += size_bytes
        self.next_offset = last_offset + 1

    def has_room(self, config, size_bytes, last_offset, max_timestamp):
        """Returns whether a batch needs no new segment; False also if this is not known here.

        The limits of the configuration are kept until it changes.
        """
        if config is not self.limited_by or self.free_index_entries <= 0:
            self.max_bytes, self.roll_ms, self.free_index_entries = self.limits(config)
            self.limited_by = config
        return (
            self.size_bytes <= self.max_bytes - size_bytes
            and last_offset - self.base_offset <= _MAX_RELATIVE_OFFSET
            and self.free_index_entries > 0
            and self.first_timestamp >= 0
            and self.size_bytes > 0
            and max_timestamp - self.first_timestamp <= self.roll_ms
        )

    def forget_limits(self):
        """The indexes have changed."""
        self.limited_by = None
        self.max_bytes = self.roll_ms = self.free_index_entries = 0


@cython.cclass
class ProducerStateEntry:
    """One producer's state. `batches` are all of the current epoch, oldest first."""

    def __init__(
        self,
        producer_id,
        epoch=NO_PRODUCER_EPOCH,
        coordinator_epoch=-1,
        last_timestamp=-1,
        transaction_start=NO_TRANSACTION,
    ):
        self.producer_id = producer_id
        self.epoch = epoch
        self.coordinator_epoch = coordinator_epoch
        self.last_timestamp = last_timestamp
        self.transaction_first_offset = transaction_start
        self.next_sequence = 0
        self.batches = []

    @property
    def last_sequence(self):
        batches: list = self.batches
        return batches[len(batches) - 1].last_sequence if batches else NO_SEQUENCE

    @property
    def last_offset(self):
        batches: list = self.batches
        return batches[len(batches) - 1].last_offset if batches else -1

    def find_duplicate(self, header):
        """Returns the batch that this one is a retry of."""
        if header.producer_epoch == self.epoch:
            first, last = header.base_sequence, header.last_sequence
            for batch in self.batches:
                if batch.first_sequence == first and batch.last_sequence == last:
                    return batch
        return None

    def has_open_transaction(self, epoch):
        """Returns whether a transaction of this epoch is open."""
        return self.transaction_first_offset >= 0 and self.epoch == epoch

    def update_epoch(self, epoch):
        if epoch != self.epoch:
            self.epoch = epoch
            self.next_sequence = 0
            self.batches = []

    def add_batch(self, batch):
        """Adds the newest batch of this epoch."""
        batches: list = self.batches
        if len(batches) == _BATCHES_PER_PRODUCER:
            del batches[0]
        batches.append(batch)
        last_sequence: Long = batch.last_sequence
        self.next_sequence = (last_sequence + 1) & _MAX_SEQUENCE

    def add_next(self, batch, first_offset, last_offset):
        """Adds a batch that `ProducerEntries.find_next` was called with."""
        last_sequence: Long = (batch.base_sequence + batch.last_offset_delta) & _MAX_SEQUENCE
        # The constructor without its check of the number of fields, which costs as much again.
        self.add_batch(
            tuple.__new__(
                BatchMetadata,
                (
                    batch.base_sequence,
                    last_sequence,
                    first_offset,
                    last_offset,
                    batch.max_timestamp,
                ),
            )
        )
        self.last_timestamp = batch.max_timestamp


@cython.cclass
class ProducerEntries:
    """The producers of one log, by id."""

    def __init__(self):
        self.entries = {}
        self.pending_verifications = {}

    def find_next(self, batch):
        """Returns the producer of a batch that is the next in its sequence, of the same epoch and
        transaction; None for any other, which may be valid as well."""
        producer: ProducerStateEntry = self.entries.get(batch.producer_id)
        if (
            producer is None
            or batch.base_sequence == _NO_SEQUENCE
            or batch.base_sequence != producer.next_sequence
            or batch.producer_epoch != producer.epoch
            or (producer.transaction_first_offset >= 0)
            != (batch.attributes & _TRANSACTIONAL_BIT != 0)
            or self.pending_verifications
        ):
            return None
        return producer


@cython.cclass
class LogEnd:
    """The end of a log, where its leader appends."""

    def append_plain(self, batch, leader_epoch, now_ms):
        """Assigns the next offsets to the batch and writes it; returns the first of them.

        Returns NOT_PLAIN if the batch is a marker or a retry, is not the next of its producer,
        or needs a new segment or epoch.
        """
        size_bytes: Size = batch.size_bytes
        first_offset: Long = self.log_end_offset
        last_offset: Long = first_offset + batch.last_offset_delta
        active: SegmentEnd = self.segments.active
        producers: ProducerEntries
        producer: ProducerStateEntry = None
        if batch.producer_id >= 0:
            if batch.attributes & _CONTROL_BIT:
                return NOT_PLAIN
            producers = self.producers
            producer = producers.find_next(batch)
            if producer is None:
                return NOT_PLAIN
        if leader_epoch != self.leader_epochs.latest_epoch or not active.has_room(
            self.config, size_bytes, last_offset, batch.max_timestamp
        ):
            return NOT_PLAIN
        batch.assign_offset(first_offset, leader_epoch)
        try:
            active.append(batch.buffer, size_bytes)
        except OSError as error:
            raise log_dir_failure(self.directory, error) from error
        # The batch is in the file: from here on it is part of the log.
        active.on_batch_written(size_bytes, last_offset, batch.max_timestamp)
        self.log_end_offset = last_offset + 1
        if producer is not None:
            producer.add_next(batch, first_offset, last_offset)
        flusher = self.flusher
        if flusher.unflushed_since_ms < 0:
            flusher.unflushed_since_ms = now_ms
        return first_offset

    def try_append_plain(self, batch, leader_epoch, now_ms):
        """Does the same for a caller in Python; any other kind of batch is not plain."""
        if not isinstance(batch, ValidBatch):
            return NOT_PLAIN
        return self.append_plain(batch, leader_epoch, now_ms)
