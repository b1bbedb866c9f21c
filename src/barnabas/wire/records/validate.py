"""What a leader checks of the batch a producer sends it, and corrects before it is stored.

The usual batch (uncompressed or in the codec the topic keeps, timestamps of the producer's)
is checked where it lies and stays the bytes it was. Otherwise the header is patched in place,
or the records are compressed anew.
"""

from dataclasses import dataclass
from typing import NamedTuple

import crc32c

from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.records import _loops
from barnabas.wire.records.batch import (
    APPEND_TIME_BIT,
    CODEC_BITS,
    HEADER_BYTES,
    LENGTH_END,
    MAGIC,
    NO_PRODUCER_ID,
    NO_TIMESTAMP,
    BatchHeader,
    CorruptBatch,
    read_header,
    set_max_timestamp,
    stamp_append_time,
    write_header,
)
from barnabas.wire.records.compression import Buffer, Codec, CompressionError, compress
from barnabas.wire.records.read import MAX_DECOMPRESSED_BYTES, record_bytes

MAX_RECORD_ERRORS = 1000  # named one by one in an answer; a batch can hold a hundred times more

_EARLIEST = -(1 << 63)
_LATEST = (1 << 63) - 1
_SMALLEST_LENGTH = 14  # of a message of format v0, the oldest there was
_MAGIC_AT = 16


@dataclass(slots=True, frozen=True)
class ProduceRules:
    """What a topic's settings ask of a batch; built once per configuration."""

    max_message_bytes: int
    compacted: bool
    append_time: bool
    before_max_ms: int
    after_max_ms: int
    codec: Codec | None  # None: as the producer sent it
    level: int | None = None
    max_decompressed_bytes: int = MAX_DECOMPRESSED_BYTES


class ValidBatch(NamedTuple):
    """A batch that may be appended, its header as it now stands in the buffer."""

    header: BatchHeader
    buffer: memoryview | bytearray
    max_timestamp: int


class InvalidRecords(KafkaError):  # noqa: N818 - the domain's word for it
    """The batch is refused; `record_errors` says which records it was for, and why."""

    def __init__(
        self, code: ErrorCode, message: str, record_errors: list[tuple[int, str]] | None = None
    ) -> None:
        super().__init__(code, message)
        self.record_errors = record_errors or []


def validate(records: memoryview, rules: ProduceRules, now_ms: int) -> ValidBatch:
    """Checks the one batch in `records`, patching it in place.

    The buffer of the result is the same memory, or new bytes if the topic's codec differs.
    """
    header = _only_batch(records)
    size = header.length + LENGTH_END
    if size > rules.max_message_bytes:
        raise InvalidRecords(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"The batch takes {size} bytes; max.message.bytes allows {rules.max_message_bytes}.",
        )
    if crc32c.crc32c(records[21:size]) != header.crc:
        raise CorruptBatch(f"The batch's checksum is not {header.crc:#010x}, as it claims.")
    _check_header(header)
    body, start, end = _records(records, header, rules)
    max_timestamp = _check_records(body, start, end, header, rules, now_ms)
    buffer: memoryview | bytearray = records[:size] if size != len(records) else records
    if rules.codec is not None and rules.codec != header.attributes & CODEC_BITS:
        header, buffer = _recompress(body, start, end, header, rules)
    if rules.append_time:
        stamp_append_time(buffer, 0, now_ms)
        return ValidBatch(read_header(buffer), buffer, now_ms)
    if max_timestamp != header.max_timestamp:
        set_max_timestamp(buffer, 0, max_timestamp)
        return ValidBatch(read_header(buffer), buffer, max_timestamp)
    return ValidBatch(header, buffer, max_timestamp)


def _only_batch(records: memoryview) -> BatchHeader:
    """The header of the one whole batch there is; bytes that are not a whole one are ignored."""
    if not _starts_with_batch(records, 0):
        raise InvalidRecords(
            ErrorCode.INVALID_RECORD, "There is no whole record batch for the partition."
        )
    if records[_MAGIC_AT] != MAGIC:
        raise InvalidRecords(
            ErrorCode.INVALID_RECORD,
            f"The batch has magic {records[_MAGIC_AT]}; only format v2 is accepted. "
            "Use a client of Kafka 0.11 or later.",
        )
    header = read_header(records)
    size = header.length + LENGTH_END
    if size != len(records) and _starts_with_batch(records, size):
        raise InvalidRecords(
            ErrorCode.INVALID_RECORD, "There is more than one record batch for the partition."
        )
    return header


def _starts_with_batch(records: memoryview, position: int) -> bool:
    """Whether a whole batch, of whatever format, is at `position`."""
    left = len(records) - position
    if left < LENGTH_END:
        return False
    length = int.from_bytes(records[position + 8 : position + 12], signed=True)
    if length < _SMALLEST_LENGTH:
        raise CorruptBatch(f"A batch claims a length of {length}.")
    if left <= _MAGIC_AT:
        return False
    if records[position + _MAGIC_AT] > MAGIC:
        raise CorruptBatch(f"A batch has magic {records[position + _MAGIC_AT]}.")
    return length + LENGTH_END <= left


def _check_header(header: BatchHeader) -> None:
    """Refuses what only the system itself writes, and fields that contradict each other."""
    attributes = header.attributes
    reason = ""
    if header.base_offset != 0:
        reason = f"has the base offset {header.base_offset} where a producer writes 0"
    elif header.record_count <= 0:
        reason = f"claims {header.record_count} records"
    elif header.last_offset_delta != header.record_count - 1:
        reason = (
            f"claims {header.record_count} records and offsets from 0 to {header.last_offset_delta}"
        )
    elif header.is_control:
        reason = "is a control batch, which clients may not write"
    elif header.producer_id == NO_PRODUCER_ID:
        if header.is_transactional:
            reason = "is transactional without a producer id"
    elif header.producer_id < 0 or header.producer_epoch < 0 or header.base_sequence < 0:
        reason = (
            f"is of producer {header.producer_id}, epoch {header.producer_epoch}, "
            f"from sequence {header.base_sequence}"
        )
    if reason:
        raise InvalidRecords(ErrorCode.INVALID_RECORD, f"The batch {reason}.")
    if attributes & CODEC_BITS > Codec.ZSTD:
        raise InvalidRecords(
            ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
            f"The batch names codec {attributes & CODEC_BITS}, which does not exist.",
        )


def _records(
    records: memoryview, header: BatchHeader, rules: ProduceRules
) -> tuple[Buffer, int, int]:
    if header.attributes & CODEC_BITS == Codec.NONE:
        return records, HEADER_BYTES, header.length + LENGTH_END
    try:
        return record_bytes(records, 0, header, rules.max_decompressed_bytes)
    except CompressionError as error:
        raise InvalidRecords(ErrorCode.INVALID_RECORD, error.message) from None


def _check_records(
    body: Buffer, start: int, end: int, header: BatchHeader, rules: ProduceRules, now_ms: int
) -> int:
    """The latest timestamp of the records, all of which are as the topic wants them."""
    earliest, latest = _EARLIEST, _LATEST
    if not rules.append_time:
        earliest = max(now_ms - rules.before_max_ms, _EARLIEST)
        latest = min(now_ms + rules.after_max_ms, _LATEST)
    max_timestamp, malformed, keyless, untimely = _loops.walk(
        body, start, end, header.record_count, header.base_timestamp, earliest, latest
    )
    if malformed >= 0:
        raise InvalidRecords(ErrorCode.INVALID_RECORD, _malformed(malformed, header.record_count))
    if untimely >= 0 or (keyless >= 0 and rules.compacted) or header.attributes & APPEND_TIME_BIT:
        raise _refused(body, start, end, header, rules, earliest, latest)
    return max_timestamp


def _malformed(index: int, count: int) -> str:
    if index == count:
        return f"There are bytes left after the last of {count} records."
    return f"Record {index} of {count} is malformed, or its offset does not follow."


def _refused(
    body: Buffer,
    start: int,
    end: int,
    header: BatchHeader,
    rules: ProduceRules,
    earliest: int,
    latest: int,
) -> InvalidRecords:
    """Names the records that have no key where one is needed, or a timestamp out of bounds."""
    errors: list[tuple[int, str]] = []
    code = ErrorCode.INVALID_RECORD
    decoded = _loops.decode(body, start, end, header.record_count, 0, header.base_timestamp, None)
    for index, record in enumerate(decoded):
        if len(errors) == MAX_RECORD_ERRORS:
            break
        timely = record.timestamp == NO_TIMESTAMP or earliest <= record.timestamp <= latest
        if rules.compacted and record.key is None:
            errors.append((index, "A compacted topic takes no record without a key."))
        elif header.attributes & APPEND_TIME_BIT:
            code = ErrorCode.INVALID_TIMESTAMP
            errors.append((index, "A producer may not claim the append time of the log."))
        elif not timely:
            code = ErrorCode.INVALID_TIMESTAMP
            errors.append(
                (index, f"Timestamp {record.timestamp} is not within {earliest} to {latest}.")
            )
    what = "without a key" if code is ErrorCode.INVALID_RECORD else "with an invalid timestamp"
    return InvalidRecords(code, f"The batch has records {what}.", errors)


def _recompress(
    body: Buffer, start: int, end: int, header: BatchHeader, rules: ProduceRules
) -> tuple[BatchHeader, bytearray]:
    """The same records in the topic's codec; the batch must still fit its bound."""
    assert rules.codec is not None
    with memoryview(body) as view:
        compressed = compress(rules.codec, view[start:end], rules.level)
    buffer = bytearray(HEADER_BYTES) + compressed
    if len(buffer) > rules.max_message_bytes:
        raise InvalidRecords(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"The batch takes {len(buffer)} bytes as {rules.codec.name}; "
            f"max.message.bytes allows {rules.max_message_bytes}.",
        )
    header = header._replace(
        length=len(buffer) - LENGTH_END,
        attributes=header.attributes & ~CODEC_BITS | rules.codec,
    )
    write_header(buffer, 0, header)
    return read_header(buffer), buffer
