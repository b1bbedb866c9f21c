"""Validates the batch of a producer before the leader appends it.

The usual batch (in the topic's codec, with the producer's timestamps) is checked in place and its
bytes do not change. For append time, or a wrong max timestamp, its header is patched in place; for
another codec its records are recompressed.
"""

from dataclasses import dataclass

from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.records import _loops, _validation
from barnabas.wire.records._validation import ValidBatch as ValidBatch
from barnabas.wire.records.batch import (
    CODEC_BITS,
    HEADER_BYTES,
    LENGTH_END,
    MAGIC,
    MAGIC_AT,
    CorruptBatch,
    read_header,
    set_max_timestamp,
    stamp_append_time,
    write_header,
)
from barnabas.wire.records.compression import Buffer, Codec, compress
from barnabas.wire.records.read import MAX_DECOMPRESSED_BYTES

MAX_RECORD_ERRORS = 1000  # listed in a response; a batch can have a hundred times more

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
    checker = _validation.BatchChecker()
    checker.use(rules, now_ms)
    batch = _validation.ValidBatch()
    fault = checker.check_batch(batch, records)
    if fault == _validation.NOT_ONE_BATCH:
        records = _only_batch(records)
        fault = checker.check_batch(batch, records)
    if fault:
        raise _error(fault, batch, records, checker, rules)
    batch.buffer = records
    if rules.codec is not None and rules.codec != batch.attributes & CODEC_BITS:
        batch = _recompress(batch, checker.body or records[HEADER_BYTES:], rules)
    if rules.append_time:
        stamp_append_time(batch.buffer, 0, now_ms)
        return _validation.ValidBatch(batch.header, batch.buffer, now_ms)
    if batch.max_timestamp != batch.header_timestamp:
        set_max_timestamp(batch.buffer, 0, batch.max_timestamp)
        return _validation.ValidBatch(batch.header, batch.buffer, batch.max_timestamp)
    return batch


def _only_batch(records: memoryview) -> memoryview:
    """Returns the only whole batch; no other batch may follow it."""
    if len(records) >= HEADER_BYTES and records[MAGIC_AT] == MAGIC:
        read_header(records)  # raises CorruptBatch if the length is too small
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
    size = read_header(records).size_bytes
    if size != len(records) and _whole_batch_at(records, size):
        raise UnfitRequest(
            ErrorCode.INVALID_RECORD, "There is more than one record batch for the partition."
        )
    return records[:size]


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


def _error(
    fault: int,
    batch: ValidBatch,
    records: memoryview,
    checker: _validation.BatchChecker,
    rules: ProduceRules,
) -> KafkaError:
    """Returns the error for a fault of the batch."""
    count = batch.record_count
    match fault:
        case _validation.TOO_LARGE:
            return _too_large(batch.size_bytes, rules)
        case _validation.WRONG_CHECKSUM:
            return CorruptBatch(f"The batch does not match its checksum {batch.crc:#010x}.")
        case _validation.HAS_APPEND_TIME:
            return InvalidRecords(
                ErrorCode.INVALID_TIMESTAMP,
                "The batch claims to have the log's append time, which only the log sets.",
            )
        case _validation.UNKNOWN_CODEC:
            return InvalidRecords(
                ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
                f"The batch names codec {batch.attributes & CODEC_BITS}, which does not exist.",
            )
        case _validation.NOT_DECOMPRESSED:
            # The checksum is right: CORRUPT_MESSAGE would make the client retry in vain.
            return InvalidRecords(ErrorCode.INVALID_RECORD, checker.error)
        case _validation.MALFORMED_RECORD:
            malformed = checker.malformed
            return InvalidRecords(
                ErrorCode.INVALID_RECORD,
                f"Record {malformed} of {count} is malformed or out of order."
                if malformed < count
                else f"There are bytes left after the last of {count} records.",
            )
        case _validation.REJECTED_RECORDS:
            body = records[HEADER_BYTES:] if checker.body is None else checker.body
            return _rejected_records(body, batch, checker, rules)
    return InvalidRecords(ErrorCode.INVALID_RECORD, f"The batch {_header_fault(fault, batch)}.")


def _header_fault(fault: int, batch: ValidBatch) -> str:
    """Returns what is wrong with the header of a batch."""
    match fault:
        case _validation.WRONG_COUNT:
            return f"claims {batch.record_count} records"
        case _validation.WRONG_LAST_OFFSET:
            return (
                f"claims {batch.record_count} records, and offsets from 0 to "
                f"{batch.last_offset_delta}"
            )
        case _validation.WRONG_BASE_OFFSET:
            return f"has the base offset {batch.base_offset} where a producer writes 0"
        case _validation.CONTROL_BATCH:
            return "is a control batch, which clients may not write"
        case _validation.HAS_DELETE_HORIZON:
            return "has a delete horizon, which only compaction sets"
    return (
        f"is of producer {batch.producer_id}, epoch {batch.producer_epoch}, from sequence "
        f"{batch.base_sequence}"
    )


def _rejected_records(
    body: Buffer, batch: ValidBatch, checker: _validation.BatchChecker, rules: ProduceRules
) -> RejectedRecords:
    faults = _loops.find_faults(
        body,
        batch.record_count,
        batch.base_timestamp,
        checker.earliest,
        checker.latest,
        rules.compacted,
        MAX_RECORD_ERRORS,
    )
    return RejectedRecords(faults, checker.earliest, checker.latest)


def _recompress(batch: ValidBatch, body: Buffer, rules: ProduceRules) -> ValidBatch:
    """Returns the batch in the topic's codec; it must still be within the size limit."""
    codec = rules.codec or Codec.NONE
    buffer = bytearray(HEADER_BYTES)
    buffer += compress(codec, body, rules.level)
    if len(buffer) > rules.max_message_bytes:
        raise _too_large(len(buffer), rules)
    header = batch.header
    write_header(
        buffer,
        0,
        header._replace(
            length=len(buffer) - LENGTH_END,
            attributes=header.attributes & ~CODEC_BITS | codec,
        ),
    )
    return _validation.ValidBatch(read_header(buffer), buffer, batch.max_timestamp)


def _too_large(size: int, rules: ProduceRules) -> InvalidRecords:
    return InvalidRecords(
        ErrorCode.MESSAGE_TOO_LARGE,
        f"The batch takes {size} bytes; max.message.bytes allows {rules.max_message_bytes}.",
    )
