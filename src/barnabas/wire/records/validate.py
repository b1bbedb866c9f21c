"""Validates the batch of a producer before the leader appends it.

The usual batch (in the topic's codec, with the producer's timestamps) is checked in place and its
bytes do not change. For append time, or a wrong max timestamp, its header is patched in place; for
another codec its records are recompressed.
"""

from dataclasses import dataclass
from typing import NamedTuple

from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.records import _loops
from barnabas.wire.records.batch import (
    APPEND_TIME_BIT,
    CODEC_BITS,
    CONTROL_BIT,
    CRC_END,
    DELETE_HORIZON_BIT,
    HEADER_BYTES,
    LENGTH_END,
    MAGIC,
    MAGIC_AT,
    NO_PRODUCER_ID,
    BatchHeader,
    CorruptBatch,
    read_header,
    set_max_timestamp,
    stamp_append_time,
    write_header,
)
from barnabas.wire.records.checksum import crc32c
from barnabas.wire.records.compression import Buffer, Codec, CompressionError, compress
from barnabas.wire.records.decompressor import decompress_for_validation
from barnabas.wire.records.read import MAX_DECOMPRESSED_BYTES

MAX_RECORD_ERRORS = 1000  # listed in a response; a batch can have a hundred times more

_EARLIEST = -(1 << 63)
_LATEST = (1 << 63) - 1
_SMALLEST_LENGTH = 14  # of a message of format v0, the oldest format


@dataclass(slots=True, frozen=True)
class ProduceRules:
    """The rules of a topic's settings for batches; built once per configuration."""

    max_message_bytes: int
    compacted: bool
    append_time: bool
    before_max_ms: int
    after_max_ms: int
    codec: Codec | None  # None: the producer's
    level: int | None = None  # None: the codec's default
    max_decompressed_bytes: int = MAX_DECOMPRESSED_BYTES


class ValidBatch(NamedTuple):
    """A batch that may be appended, with its header as patched in the buffer."""

    header: BatchHeader
    buffer: memoryview | bytearray
    max_timestamp: int


class InvalidRecords(KafkaError):  # noqa: N818 - the domain's word for it
    """The batch is invalid."""


class RejectedRecords(InvalidRecords):
    """Records of the batch have no key, or a timestamp out of the range that the topic allows.

    `faults` has the index of each, with its timestamp, or None if it has no key.
    """

    def __init__(self, faults: list[tuple[int, int | None]], earliest: int, latest: int) -> None:
        if any(timestamp is not None for _, timestamp in faults):
            super().__init__(
                ErrorCode.INVALID_TIMESTAMP,
                "One or more records have been rejected due to invalid timestamp",
            )
        else:
            super().__init__(ErrorCode.INVALID_RECORD, "One or more records have been rejected")
        self.faults = faults
        self._earliest = earliest
        self._latest = latest

    def summary(self, topic_partition: str) -> str:
        """Returns the message, with the reason of the first record that decides the code."""
        is_timestamp = self.code is ErrorCode.INVALID_TIMESTAMP
        decisive = (
            reason
            for (_, timestamp), (_, reason) in zip(
                self.faults, self.record_errors(topic_partition), strict=True
            )
            if (timestamp is not None) == is_timestamp
        )
        return f"{self.message}: {next(decisive)}"

    def record_errors(self, topic_partition: str) -> list[tuple[int, str]]:
        """Returns the index of each record and why it is rejected, in Kafka's words."""
        return [
            (
                index,
                "Compacted topic cannot accept message without key in topic partition "
                f"{topic_partition}"
                if timestamp is None
                else f"Timestamp {timestamp} of message with offset {index} is out of range. "
                f"The timestamp should be within [{self._earliest}, {self._latest}]",
            )
            for index, timestamp in self.faults
        ]


class UnfitRequest(InvalidRecords):
    """The request is invalid for every partition; it fails before any log is accessed."""


def validate(records: memoryview, rules: ProduceRules, now_ms: int) -> ValidBatch:
    """Checks the one batch in `records`, patching it in place.

    The buffer of the result is the same memory, or new bytes if the topic's codec differs.
    """
    header = _only_batch(records)
    size = header.length + LENGTH_END
    if size > rules.max_message_bytes:
        raise _too_large(size, rules)
    if crc32c(records[CRC_END:size]) != header.crc:
        raise CorruptBatch(f"The batch does not match its checksum {header.crc:#010x}.")
    _check_header(header)
    codec = header.attributes & CODEC_BITS
    body: Buffer = records[HEADER_BYTES:size]
    if codec:
        body = _expand(body, header.codec, rules)
    max_timestamp = _check_records(body, header, rules, now_ms)

    buffer: memoryview | bytearray = records if size == len(records) else records[:size]
    if rules.codec is not None and rules.codec != codec:
        buffer = _recompress(body, header, rules)
        header = read_header(buffer)
    if rules.append_time:
        max_timestamp = now_ms
        stamp_append_time(buffer, 0, now_ms)
        header = read_header(buffer)
    elif max_timestamp != header.max_timestamp:
        set_max_timestamp(buffer, 0, max_timestamp)
        header = read_header(buffer)
    return ValidBatch(header, buffer, max_timestamp)


def _only_batch(records: memoryview) -> BatchHeader:
    """Returns the header of the only whole batch; no other batch may follow it."""
    if len(records) >= HEADER_BYTES and records[MAGIC_AT] == MAGIC:
        header = read_header(records)
        if header.length + LENGTH_END == len(records):  # the usual case
            return header
    if not _whole_batch_at(records, 0):
        raise UnfitRequest(
            ErrorCode.INVALID_RECORD, "There is no whole record batch for the partition."
        )
    if records[MAGIC_AT] != MAGIC:
        raise UnfitRequest(
            ErrorCode.INVALID_RECORD,
            f"The batch has magic {records[MAGIC_AT]}, and only format v2 is accepted: "
            "the client must be of Kafka 0.11 or later.",
        )
    header = read_header(records)
    size = header.length + LENGTH_END
    if size != len(records) and _whole_batch_at(records, size):
        raise UnfitRequest(
            ErrorCode.INVALID_RECORD, "There is more than one record batch for the partition."
        )
    return header


def _whole_batch_at(records: memoryview, position: int) -> bool:
    """Whether there is a whole batch of any format; a partial one is ignored."""
    left = len(records) - position
    if left < LENGTH_END:
        return False
    length = int.from_bytes(records[position + 8 : position + LENGTH_END], signed=True)
    if length < _SMALLEST_LENGTH:
        raise CorruptBatch(
            f"Record size {length} is less than the minimum record overhead ({_SMALLEST_LENGTH})"
        )
    if left <= MAGIC_AT:
        return False
    if records[position + MAGIC_AT] > MAGIC:
        raise CorruptBatch(f"Invalid magic found in record: {records[position + MAGIC_AT]}")
    return length + LENGTH_END <= left


def _check_header(header: BatchHeader) -> None:
    """Rejects batches that only brokers write, and fields that contradict each other."""
    base_offset, _, _, _, _, attributes, last_delta, _, _, producer, epoch, sequence, count = header
    if count <= 0:
        reason = f"claims {count} records"
    elif last_delta != count - 1:
        reason = f"claims {count} records, and offsets from 0 to {last_delta}"
    elif base_offset != 0:
        reason = f"has the base offset {base_offset} where a producer writes 0"
    elif attributes & CONTROL_BIT:
        reason = "is a control batch, which clients may not write"
    elif attributes & DELETE_HORIZON_BIT:
        reason = "has a delete horizon, which only compaction sets"
    elif producer != NO_PRODUCER_ID and (producer < 0 or epoch < 0 or sequence < 0):
        reason = f"is of producer {producer}, epoch {epoch}, from sequence {sequence}"
    elif attributes & APPEND_TIME_BIT:
        raise InvalidRecords(
            ErrorCode.INVALID_TIMESTAMP,
            "The batch claims to have the log's append time, which only the log sets.",
        )
    elif attributes & CODEC_BITS > Codec.ZSTD:
        raise InvalidRecords(
            ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
            f"The batch names codec {attributes & CODEC_BITS}, which does not exist.",
        )
    else:
        return
    raise InvalidRecords(ErrorCode.INVALID_RECORD, f"The batch {reason}.")


def _expand(compressed: Buffer, codec: Codec, rules: ProduceRules) -> Buffer:
    try:
        return decompress_for_validation(codec, compressed, rules.max_decompressed_bytes)
    except CompressionError as error:
        # The checksum is right: CORRUPT_MESSAGE would make the client retry in vain.
        raise InvalidRecords(ErrorCode.INVALID_RECORD, error.message) from None


def _check_records(body: Buffer, header: BatchHeader, rules: ProduceRules, now_ms: int) -> int:
    """Validates the records by the topic's rules. Returns their latest timestamp."""
    if rules.append_time:
        earliest, latest = _EARLIEST, _LATEST
    else:
        earliest = now_ms - rules.before_max_ms
        latest = now_ms + rules.after_max_ms
        if latest > _LATEST:
            latest = _LATEST
    max_timestamp, malformed, keyless, untimely = _loops.walk(
        body, header.record_count, header.base_timestamp, earliest, latest
    )
    if malformed >= 0:
        raise InvalidRecords(
            ErrorCode.INVALID_RECORD,
            f"Record {malformed} of {header.record_count} is malformed or out of order."
            if malformed < header.record_count
            else f"There are bytes left after the last of {header.record_count} records.",
        )
    if untimely >= 0 or (keyless >= 0 and rules.compacted):
        faults = _loops.find_faults(
            body,
            header.record_count,
            header.base_timestamp,
            earliest,
            latest,
            rules.compacted,
            MAX_RECORD_ERRORS,
        )
        raise RejectedRecords(faults, earliest, latest)
    return max_timestamp


def _recompress(body: Buffer, header: BatchHeader, rules: ProduceRules) -> bytearray:
    """Returns the batch in the topic's codec; it must still be within the size limit."""

    codec = rules.codec or Codec.NONE
    buffer = bytearray(HEADER_BYTES)
    buffer += compress(codec, body, rules.level)
    if len(buffer) > rules.max_message_bytes:
        raise _too_large(len(buffer), rules)
    write_header(
        buffer,
        0,
        header._replace(
            length=len(buffer) - LENGTH_END,
            attributes=header.attributes & ~CODEC_BITS | codec,
        ),
    )
    return buffer


def _too_large(size: int, rules: ProduceRules) -> InvalidRecords:
    return InvalidRecords(
        ErrorCode.MESSAGE_TOO_LARGE,
        f"The batch takes {size} bytes; max.message.bytes allows {rules.max_message_bytes}.",
    )
