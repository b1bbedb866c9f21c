# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
"""Decodes fetched batches to messages. Compiled, or run as the Python it is.

A `CompletedFetch` reads what one fetch brought of one partition, batch by batch, in the user's
thread: batches are decompressed as late as possible, and never on the loop.

The fields of the classes are declared in `_completed_fetch.pxd`; those of a batch header are
documented in `wire/records/batch.py`.
"""

from __future__ import annotations

from barnabas.client.errors import KafkaError
from barnabas.client.values import OFFSET_INVALID
from barnabas.wire.errors import KafkaError as WireError
from barnabas.wire.records.batch import CorruptBatch
from barnabas.wire.records.checksum import crc32c
from barnabas.wire.records.compression import Codec
from barnabas.wire.records.control import ControlType, read_control_type
from barnabas.wire.records.decompressor import (
    Decompressor,
    borrow_decompressor,
    give_back_decompressor,
)
from barnabas.wire.records.read import MAX_DECOMPRESSED_BYTES, Run

try:
    import cython

    if not cython.compiled:  # Cython's own stand-in for itself is many times slower than ours
        raise ImportError
except ImportError:
    from barnabas.wire.records import _uncompiled as cython

if cython.compiled:
    from cython.cimports.barnabas.client._message import Message, make
    from cython.cimports.barnabas.wire.records._loops import Walk

    Data = cython.typedef(cython.pointer[cython.const[cython.uchar]])
    Size = cython.typedef(cython.Py_ssize_t)
    Long = cython.typedef(cython.longlong)
else:
    from barnabas.client._message import Message, make
    from barnabas.wire.records._loops import Walk

COMPILED: bool = cython.compiled


def scan_batches(batches: cython.const[cython.uchar][::1]) -> tuple[int, int, int, int]:
    """Returns the size of the whole batches, the next offset, the record count and last epoch.

    It stops at an invalid header; without any batch the next offset is -1.
    """
    data: Data = _address(batches)
    end: Size = len(batches)
    at: Size = 0
    size: Long
    next_offset: Long = -1
    records: Long = 0
    epoch: Long = -1
    while end - at >= 61:
        size = 12 + _integer(data, at + 8, 4)
        if size < 61 or size > end - at or data[at + 16] != 2:
            break
        next_offset = _integer(data, at, 8) + _integer(data, at + 23, 4) + 1
        records += _integer(data, at + 57, 4)
        epoch = _integer(data, at + 12, 4)
        at += size
    return at, next_offset, records, epoch


@cython.final
@cython.cclass
class ConsumerProgress:
    """How far a partition was consumed, in its current assignment.

    A fetch of another `version` is not delivered: a seek and a revocation change the version.
    `live_version` is the version, or -1 while the partition is paused.
    """

    def __init__(self, topic: str, partition: int) -> None:
        self.topic = topic
        self.partition = partition
        self.version = 0
        self.live_version = 0
        self.position = OFFSET_INVALID  # the offset after the last message that was delivered
        self.leader_epoch = -1  # of the leader that appended that message


@cython.final
@cython.cclass
class CompletedFetch:
    """The batches of one partition in a fetch response that are not consumed yet."""

    def __init__(
        self,
        progress: ConsumerProgress,
        batches: object,
        fetch_offset: int,
        next_offset: int,
        record_count: int,
        aborted: list[tuple[int, int]],
        read_committed: bool,
        check_crcs: bool,
    ) -> None:
        self.progress = progress
        self.version = progress.version
        self.fetched = batches
        self.batches = batches
        self.size_bytes = len(batches)
        self.record_count = record_count
        self.at = 0
        self.fetch_offset = fetch_offset
        self.next_offset = next_offset
        self.aborted = aborted  # producer id and first offset, in order of the offsets
        self.aborting = set()  # the producers whose aborted transaction is open at this batch
        self.read_committed = read_committed
        self.check_crcs = check_crcs
        self.plain = Walk(batches)
        self.walk = self.plain
        self.walked = batches  # the buffer of the walk
        self.borrowed = None  # the decompressor that `next` uses
        self.is_lent = False  # the buffer is the decompressor's of who takes runs
        self.epoch = -1
        self.timestamp_type = 0
        self.batch_end_offset = fetch_offset

    def is_live(self):
        """Whether its messages may be delivered."""
        return self.version == self.progress.live_version

    def next(self):
        """Returns the next message, or one with the error of a corrupt batch; None at the end."""
        walk: Walk
        progress: ConsumerProgress = self.progress
        if self.version != progress.live_version:
            return None
        try:
            if self.walk.left == 0 and not self._begin(None):
                progress.position = max(progress.position, self.next_offset)
                self._give_back()
                return None
            walk = self.walk
            walk.step()
        except WireError as error:
            self.walk.left = 0
            return self._broken(error)
        progress.position = walk.offset + 1
        progress.leader_epoch = self.epoch
        return make(
            progress.topic,
            progress.partition,
            walk.offset,
            self.epoch,
            self.timestamp_type,
            walk.timestamp,
            walk.key(),
            walk.value(),
            walk.headers(),
        )

    def take_run(self, limit: cython.int, decompressor: Decompressor) -> Run | None:
        """Returns the next encoded records of one batch, `limit` at most; None at the end.

        If they were compressed, they are valid until the decompressor is cleared. Raises
        CorruptBatch for a batch that is unreadable; the next call continues after it.
        """
        walk: Walk
        start: Size
        count: cython.int
        if self.version != self.progress.live_version:
            return None
        if self.walk.left == 0 and not self._begin(decompressor):
            self.progress.position = max(self.progress.position, self.next_offset)
            return None
        walk = self.walk
        start = walk.position
        if walk.left <= limit:
            count = walk.left
            end = walk.end
            walk.left = 0
            self.progress.position = self.batch_end_offset
        else:
            count = limit
            try:
                for _ in range(limit):
                    walk.step()
            except WireError:
                walk.left = 0
                raise
            end = walk.position
            self.progress.position = walk.offset + 1
        self.progress.leader_epoch = self.epoch
        append_time = walk.timestamp if walk.is_stamped else None
        run = Run(
            memoryview(self.walked)[start:end],
            count,
            walk.base_offset,
            walk.base_timestamp,
            append_time,
        )
        self.borrowed = None  # the run may be in its buffer
        if self.is_lent and walk.left > 0:
            self._keep_rest()
        return run

    def _keep_rest(self) -> None:
        """Copies the records that are left of a batch, which outlive the decompressor's buffer."""
        walk: Walk = self.walk
        self.is_lent = False
        self.walked = bytes(memoryview(self.walked)[walk.position : walk.end])
        self.walk = Walk(self.walked)
        self.walk.begin(
            0,
            len(self.walked),
            walk.left,
            walk.base_offset,
            walk.base_timestamp,
            walk.is_stamped,
            walk.timestamp,
        )

    def _give_back(self) -> None:
        if self.borrowed is not None:
            give_back_decompressor(self.borrowed)
            self.borrowed = None

    def _begin(self, decompressor):
        """Moves to the next record to deliver; returns False at the end."""
        data: Data = _address(self.batches)
        end: Size = len(self.batches)
        at: Size
        size: Long
        attributes: cython.int
        base_offset: Long
        last_offset: Long
        count: cython.int
        while end - self.at >= 61:
            at = self.at
            size = 12 + _integer(data, at + 8, 4)
            if size < 61 or size > end - at:
                self.at = end
                return False
            self.at = at + size
            base_offset = _integer(data, at, 8)
            last_offset = base_offset + _integer(data, at + 23, 4)
            if last_offset < self.fetch_offset:
                continue
            self.batch_end_offset = last_offset + 1
            if self.check_crcs:
                self._check_crc(at, size, base_offset)
            attributes = _integer(data, at + 21, 2)
            if attributes & 0x30 and self._is_hidden(at, attributes, last_offset):
                continue
            count = _integer(data, at + 57, 4)
            if count < 0:
                raise CorruptBatch(f"The batch at offset {base_offset} claims {count} records.")
            self._walk_into(at, at + size, attributes, decompressor)
            self.epoch = _integer(data, at + 12, 4)
            self.timestamp_type = 2 if attributes & 0x08 else 1
            self.walk.begin(
                at + 61 if self.walk is self.plain else 0,
                at + size if self.walk is self.plain else len(self.walked),
                count,
                base_offset,
                _integer(data, at + 27, 8),
                attributes & 0x08 != 0,
                _integer(data, at + 35, 8),
            )
            if base_offset < self.fetch_offset:
                self._skip()
            if self.walk.left > 0:
                return True
        return False

    def _walk_into(
        self, at: Size, end: Size, attributes: cython.int, decompressor: Decompressor | None
    ) -> None:
        """Sets the walk to the records of a batch, which it decompresses if needed."""
        self.is_lent = False
        if attributes & 0x07 == 0:
            self.walk = self.plain
            self.walked = self.fetched
            return
        codec = _codec(attributes & 0x07)
        body = memoryview(self.fetched)[at + 61 : end]
        if decompressor is not None:
            self.is_lent = True
        else:
            if self.borrowed is None:
                self.borrowed = borrow_decompressor()
            decompressor = self.borrowed
            decompressor.clear()
        self.walked = decompressor.decompress(codec, body, MAX_DECOMPRESSED_BYTES)
        self.walk = Walk(self.walked)

    def _skip(self) -> None:
        """Skips the records before the fetch offset: a fetch brings whole batches."""
        walk: Walk = self.walk
        while walk.left > 0:
            walk.step()
            if walk.offset >= self.fetch_offset:
                walk.step_back()
                return

    def _is_hidden(self, at, attributes, last_offset):
        """Whether the batch is hidden from users: a control batch, or of an aborted transaction.

        The broker reports the first offset of an aborted transaction; a marker is at its end.
        """
        producer_id = _integer(_address(self.batches), at + 43, 8)
        if self.read_committed:
            while self.aborted and self.aborted[0][1] <= last_offset:
                self.aborting.add(self.aborted.pop(0)[0])
        if attributes & 0x20 == 0:
            return producer_id in self.aborting
        if producer_id in self.aborting and self._is_abort(at):
            self.aborting.discard(producer_id)
        return True

    def _is_abort(self, at: Size) -> bool:
        data: Data = _address(self.batches)
        walk: Walk = Walk(self.batches)
        end: Size = at + 12 + _integer(data, at + 8, 4)
        walk.begin(at + 61, end, 1, 0, 0, False, 0)
        walk.step()
        return read_control_type(walk.key()) == ControlType.ABORT

    def _check_crc(self, at: Size, size: Long, base_offset: Long) -> None:
        claimed = _integer(_address(self.batches), at + 17, 4) & 0xFFFFFFFF
        if crc32c(memoryview(self.fetched)[at + 21 : at + size]) != claimed:
            raise CorruptBatch(
                f"The batch at offset {base_offset} does not have the checksum it claims."
            )

    def _broken(self, error: Exception) -> Message:
        """Returns the message of a corrupt batch; the next message is after that batch."""
        progress: ConsumerProgress = self.progress
        return Message(
            progress.topic,
            progress.partition,
            max(self.batch_end_offset - 1, 0),
            value=str(error).encode(),
            error=KafkaError(KafkaError._BAD_MSG, str(error)),
        )


def _codec(bits: cython.int) -> Codec:
    try:
        return Codec(bits)
    except ValueError:
        raise CorruptBatch(f"The batch names codec {bits}, which does not exist.") from None


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _integer(data: Data, position: Size, size: cython.int) -> Long:
    """The signed integer of that many bytes, highest first."""
    value: Long = data[position] - ((data[position] & 0x80) << 1)
    index: cython.int
    for index in range(1, size):
        value = value * 256 + data[position + index]  # a negative number must not be shifted
    return value


@cython.cfunc
@cython.inline
def _address(buffer: cython.const[cython.uchar][::1]) -> Data:
    return cython.address(buffer[0]) if cython.compiled else buffer
