"""Validation of batches of producers by a leader.

The error codes are those of Apache Kafka 4.3.1 for the same bytes, except where it responds
UNKNOWN_SERVER_ERROR: for an unknown codec and for malformed compressed bytes.
"""

import threading
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from tests.wire.records.samples import NOW_MS, codecs, law, records, some_records

from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.records import decompressor
from barnabas.wire.records.batch import (
    BatchHeader,
    CorruptBatch,
    TimestampType,
    crc_is_valid,
    read_header,
    write_header,
)
from barnabas.wire.records.build import Record, build_batch
from barnabas.wire.records.compression import Buffer, Codec
from barnabas.wire.records.read import read_records
from barnabas.wire.records.validate import (
    MAX_RECORD_ERRORS,
    InvalidRecords,
    ProduceRules,
    RejectedRecords,
    ValidBatch,
    validate,
)

ANY_AGE_MS = (1 << 63) - 1
RULES = ProduceRules(
    max_message_bytes=1 << 20,
    compacted=False,
    append_time=False,
    before_max_ms=ANY_AGE_MS,
    after_max_ms=ANY_AGE_MS,
    codec=None,
)


def check(batch: bytes | bytearray, rules: ProduceRules = RULES) -> ValidBatch:
    return validate(memoryview(bytearray(batch)), rules, NOW_MS)


def error_of(batch: bytes | bytearray, rules: ProduceRules = RULES) -> KafkaError:
    with pytest.raises(KafkaError) as error:
        check(batch, rules)
    return error.value


def rewritten(batch: bytearray, **fields: int) -> bytearray:
    """Returns the batch with changed header fields and a valid checksum."""
    changed = bytearray(batch)
    write_header(changed, 0, read_header(batch)._replace(**fields))
    return changed


GOOD = build_batch(some_records(3))


@law
@given(records(), codecs)
def test_the_bytes_of_a_valid_batch_do_not_change(
    given_records: list[Record], codec: Codec
) -> None:
    batch = build_batch(given_records, codec=codec)
    before = bytes(batch)
    view = memoryview(batch)
    valid = validate(view, RULES, NOW_MS)
    assert valid.buffer is view
    assert batch == before
    assert valid.header == read_header(before)
    assert valid.max_timestamp == max(record.timestamp for record in given_records)


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        pytest.param(b"", ErrorCode.INVALID_RECORD, id="nothing"),
        pytest.param(GOOD[:5], ErrorCode.INVALID_RECORD, id="no length"),
        pytest.param(GOOD[:14], ErrorCode.INVALID_RECORD, id="no magic"),
        pytest.param(GOOD[:-1], ErrorCode.INVALID_RECORD, id="cut short"),
        pytest.param(GOOD + GOOD, ErrorCode.INVALID_RECORD, id="two batches"),
        pytest.param(GOOD + bytes(40), ErrorCode.CORRUPT_MESSAGE, id="zeros after it"),
        pytest.param(GOOD[:16] + b"\x00" + GOOD[17:], ErrorCode.INVALID_RECORD, id="magic 0"),
        pytest.param(GOOD[:16] + b"\x01" + GOOD[17:], ErrorCode.INVALID_RECORD, id="magic 1"),
        pytest.param(GOOD[:16] + b"\x03" + GOOD[17:], ErrorCode.CORRUPT_MESSAGE, id="magic 3"),
        pytest.param(GOOD[:-1] + b"!", ErrorCode.CORRUPT_MESSAGE, id="wrong checksum"),
        pytest.param(
            GOOD[:8] + (10).to_bytes(4) + GOOD[12:], ErrorCode.CORRUPT_MESSAGE, id="length 10"
        ),
        pytest.param(
            GOOD[:8] + (40).to_bytes(4) + GOOD[12:], ErrorCode.CORRUPT_MESSAGE, id="length 40"
        ),
        pytest.param(
            GOOD[:8] + b"\xff\xff\xff\xf0" + GOOD[12:], ErrorCode.CORRUPT_MESSAGE, id="length -16"
        ),
    ],
)
def test_anything_but_one_batch_raises_an_error(sent: bytes, code: ErrorCode) -> None:
    assert error_of(sent).code is code


@pytest.mark.parametrize("tail", [b"junk", b"\x01" * 40])
def test_a_partial_batch_after_the_batch_is_dropped(tail: bytes) -> None:
    assert check(GOOD + tail).buffer == GOOD


@pytest.mark.parametrize(
    "fields",
    [
        {"base_offset": 5},
        {"record_count": 0},
        {"record_count": 0, "last_offset_delta": -1},
        {"record_count": -3, "last_offset_delta": -4},
        {"record_count": 2},
        {"record_count": 2, "last_offset_delta": 1},
        {"record_count": 4, "last_offset_delta": 3},
        {"last_offset_delta": 7},
        {"attributes": 0x20},
        {"attributes": 0x40},
        {"producer_id": 6, "producer_epoch": 0},
        {"producer_id": 6, "base_sequence": 0},
        {"producer_id": -5, "producer_epoch": 0, "base_sequence": 0},
    ],
    ids=str,
)
def test_a_header_that_producers_cannot_write_is_an_invalid_record(
    fields: dict[str, int],
) -> None:
    error = error_of(rewritten(GOOD, **fields))
    assert isinstance(error, InvalidRecords)
    assert error.code is ErrorCode.INVALID_RECORD
    assert not isinstance(error, RejectedRecords)


def test_a_transactional_batch_without_a_producer_is_accepted_as_in_kafka() -> None:
    assert check(rewritten(GOOD, attributes=0x10)).header.is_transactional


def test_an_idempotent_and_a_transactional_batch_are_accepted() -> None:
    fields = {"producer_id": 0, "producer_epoch": 0, "base_sequence": 0}
    for attributes in (0, 0x10):
        assert check(rewritten(GOOD, attributes=attributes, **fields)).header.producer_id == 0


@pytest.mark.parametrize("codec", [5, 6, 7])
def test_a_codec_that_does_not_exist_is_unsupported(codec: int) -> None:
    error = error_of(rewritten(GOOD, attributes=codec))
    assert error.code is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


@pytest.mark.parametrize("codec", [codec for codec in Codec if codec is not Codec.NONE])
def test_bytes_that_do_not_decompress_are_an_invalid_record(codec: Codec) -> None:
    assert error_of(rewritten(GOOD, attributes=codec)).code is ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("codec", [codec for codec in Codec if codec is not Codec.NONE])
def test_a_batch_that_expands_beyond_the_bound_is_an_invalid_record(codec: Codec) -> None:
    batch = build_batch([Record(0, NOW_MS, None, bytes(100_000), [])], codec=codec)
    error = error_of(batch, replace(RULES, max_decompressed_bytes=99_999))
    assert error.code is ErrorCode.INVALID_RECORD
    assert check(batch).header.codec is codec


def test_a_batch_larger_than_the_topic_allows_is_too_large_even_if_it_is_corrupt() -> None:
    rules = replace(RULES, max_message_bytes=len(GOOD) - 1)
    assert error_of(GOOD, rules).code is ErrorCode.MESSAGE_TOO_LARGE
    assert error_of(GOOD[:-1] + b"!", rules).code is ErrorCode.MESSAGE_TOO_LARGE
    assert check(GOOD, replace(RULES, max_message_bytes=len(GOOD))).buffer == GOOD


@pytest.mark.parametrize("codec", Codec)
def test_offsets_with_gaps_are_an_invalid_record(codec: Codec) -> None:
    gap = [Record(offset, NOW_MS, None, b"v", []) for offset in (0, 2, 3)]
    batch = build_batch(gap, base_offset=None, codec=codec)
    error = error_of(rewritten(batch, last_offset_delta=2))
    assert error.code is ErrorCode.INVALID_RECORD


@pytest.mark.parametrize(
    "change",
    [
        lambda body: bytes([body[0] + 2]) + body[1:],
        lambda body: bytes([body[0] - 2]) + body[1:],
        lambda body: body + bytes(3),
        lambda body: body[:4] + b"\x7e" + body[5:],
        lambda body: body[:-1] + b"\x02",
        lambda body: body[:-1] + b"\x01",
    ],
    ids=["length +1", "length -1", "bytes left", "key length", "header missing", "-1 headers"],
)
def test_a_malformed_record_is_an_invalid_record(change: Callable[[bytes], bytes]) -> None:
    batch = build_batch([Record(0, NOW_MS, b"k", b"v" * 20, [])])
    body = change(bytes(batch[61:]))
    broken = rewritten(bytearray(batch[:61] + body), length=49 + len(body))
    error = error_of(broken)
    assert error.code is ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("codec", Codec)
def test_a_compacted_topic_names_the_records_without_a_key(codec: Codec) -> None:
    keys = [b"a", None, b"", None]
    batch = build_batch([Record(0, NOW_MS, key, b"v", []) for key in keys], codec=codec)
    error = error_of(batch, replace(RULES, compacted=True))
    assert isinstance(error, RejectedRecords)
    assert error.code is ErrorCode.INVALID_RECORD
    reason = "Compacted topic cannot accept message without key in topic partition table-0"
    assert error.record_errors("table-0") == [(1, reason), (3, reason)]
    assert check(batch).buffer == batch


def test_brokers_in_several_threads_check_by_their_own_rules(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    keyless = build_batch([Record(0, NOW_MS, None, b"v", [])], codec=Codec.LZ4)
    decompress = decompressor.decompress_temporarily

    def decompress_while_another_checks(codec: Codec, body: Buffer, limit: int) -> memoryview:
        monkeypatch.undo()
        other = threading.Thread(target=check, args=(keyless,))
        other.start()
        other.join()
        return decompress(codec, body, limit)

    monkeypatch.setattr(decompressor, "decompress_temporarily", decompress_while_another_checks)
    assert error_of(keyless, replace(RULES, compacted=True)).code is ErrorCode.INVALID_RECORD


def test_records_out_of_the_allowed_time_are_named() -> None:
    rules = replace(RULES, before_max_ms=1000, after_max_ms=50)
    times = [NOW_MS - 1001, NOW_MS - 1000, NOW_MS, NOW_MS + 50, NOW_MS + 51, -1]
    error = error_of(build_batch([Record(0, time, b"k", b"v", []) for time in times]), rules)
    assert isinstance(error, RejectedRecords)
    assert error.code is ErrorCode.INVALID_TIMESTAMP
    allowed = f"The timestamp should be within [{NOW_MS - 1000}, {NOW_MS + 50}]"
    assert error.record_errors("orders-0") == [
        (0, f"Timestamp {NOW_MS - 1001} of message with offset 0 is out of range. {allowed}"),
        (4, f"Timestamp {NOW_MS + 51} of message with offset 4 is out of range. {allowed}"),
    ]
    check(build_batch([Record(0, time, b"k", b"v", []) for time in times[1:4]]), rules)


def test_errors_name_missing_keys_first_and_have_the_code_of_wrong_times() -> None:
    rules = replace(RULES, compacted=True, after_max_ms=0)
    late = NOW_MS + 1
    batch = build_batch([Record(0, late, None, b"v", []), Record(1, late, b"k", b"v", [])])
    error = error_of(batch, rules)
    assert isinstance(error, RejectedRecords)
    assert error.code is ErrorCode.INVALID_TIMESTAMP
    (_, keyless), (_, untimely) = error.record_errors("table-0")
    assert "without key" in keyless
    assert str(late) in untimely
    assert error.summary("table-0").endswith(f"due to invalid timestamp: {untimely}")


def test_the_number_of_named_records_is_limited() -> None:
    batch = build_batch([Record(0, NOW_MS, None, b"", [])] * (MAX_RECORD_ERRORS + 5))
    error = error_of(batch, replace(RULES, compacted=True))
    assert isinstance(error, RejectedRecords)
    assert len(error.faults) == MAX_RECORD_ERRORS


@pytest.mark.parametrize("codec", Codec)
def test_a_wrong_max_timestamp_is_corrected_in_the_batch(codec: Codec) -> None:
    batch = rewritten(build_batch(some_records(3), codec=codec), max_timestamp=5)
    valid = validate(memoryview(batch), RULES, NOW_MS)
    assert valid.max_timestamp == valid.header.max_timestamp == NOW_MS + 2
    assert valid.header == read_header(batch)
    assert crc_is_valid(batch, 0, valid.header)


@pytest.mark.parametrize("codec", Codec)
def test_append_time_replaces_the_producers_timestamps(codec: Codec) -> None:
    rules = replace(RULES, append_time=True, before_max_ms=0, after_max_ms=0)
    batch = build_batch(some_records(3, timestamp=5), codec=codec)
    valid = validate(memoryview(batch), rules, NOW_MS)
    assert valid.header == read_header(batch)
    assert valid.header.timestamp_type is TimestampType.LOG_APPEND_TIME
    assert valid.max_timestamp == NOW_MS
    assert crc_is_valid(batch, 0, valid.header)
    assert {record.timestamp for record in read_records(batch)} == {NOW_MS}


@pytest.mark.parametrize("append_time", [True, False])
def test_a_producer_cannot_set_the_append_time_attribute(append_time: bool) -> None:
    error = error_of(rewritten(GOOD, attributes=0x08), replace(RULES, append_time=append_time))
    assert error.code is ErrorCode.INVALID_TIMESTAMP


@pytest.mark.parametrize("sent", Codec)
@pytest.mark.parametrize("kept", Codec)
def test_records_are_recompressed_if_the_topic_has_another_codec(sent: Codec, kept: Codec) -> None:
    header_fields = {"producer_id": 4, "producer_epoch": 1, "base_sequence": 9}
    batch = rewritten(build_batch(some_records(30), codec=sent), **header_fields)
    valid = check(batch, replace(RULES, codec=kept))
    assert valid.header.codec is kept
    assert valid.header == read_header(valid.buffer)
    assert crc_is_valid(valid.buffer, 0, valid.header)
    assert read_records(valid.buffer) == some_records(30)
    assert _without_codec(valid.header) == _without_codec(read_header(batch))
    if sent is kept:
        assert valid.buffer == batch


def _without_codec(header: BatchHeader) -> BatchHeader:
    return header._replace(length=0, crc=0, attributes=header.attributes & ~7)


def test_a_batch_that_is_too_large_after_recompression_raises_an_error() -> None:
    batch = build_batch([Record(0, NOW_MS, None, bytes(5000), [])], codec=Codec.GZIP)
    rules = replace(RULES, max_message_bytes=1000)
    assert check(batch, rules).buffer == batch
    error = error_of(batch, replace(rules, codec=Codec.NONE))
    assert error.code is ErrorCode.MESSAGE_TOO_LARGE


def test_recompressing_with_append_time_does_both() -> None:
    valid = check(GOOD, replace(RULES, codec=Codec.ZSTD, append_time=True))
    assert valid.header.codec is Codec.ZSTD
    assert valid.header.timestamp_type is TimestampType.LOG_APPEND_TIME
    assert crc_is_valid(valid.buffer, 0, valid.header)


def test_a_timestamp_beyond_an_int64_is_an_invalid_record() -> None:
    batch = rewritten(build_batch(some_records(3)), base_timestamp=(1 << 63) - 1)
    assert error_of(batch).code is ErrorCode.INVALID_RECORD


def test_a_corrupt_batch_is_retriable_and_an_invalid_one_is_not() -> None:
    corrupt = error_of(GOOD[:-1] + b"!")
    assert isinstance(corrupt, CorruptBatch)
    assert corrupt.code.retriable
    assert not error_of(rewritten(GOOD, record_count=2)).code.retriable
