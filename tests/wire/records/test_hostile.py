"""Malformed batches raise errors with codes, compiled and as plain Python."""

import random
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.uncompiled import load_uncompiled
from tests.wire.records.samples import NOW_MS, codecs, law, records, some_records

from barnabas.wire.errors import KafkaError
from barnabas.wire.records import _loops
from barnabas.wire.records.batch import CorruptBatch, iterate_batches, read_header, write_header
from barnabas.wire.records.build import Record, build_batch
from barnabas.wire.records.compression import Codec
from barnabas.wire.records.read import read_records
from barnabas.wire.records.validate import ProduceRules, validate

PLAIN = load_uncompiled(_loops)

RULES = ProduceRules(
    max_message_bytes=1 << 20,
    compacted=True,
    append_time=False,
    before_max_ms=1 << 40,
    after_max_ms=1 << 20,
    codec=Codec.NONE,
    max_decompressed_bytes=1 << 20,
)
TELLING_BYTES = (0x00, 0x01, 0x02, 0x7E, 0x7F, 0x80, 0xFE, 0xFF)


def survive(batch: bytearray) -> None:
    """Reads a batch in every way; all errors must have a code."""
    for reading in (
        lambda: validate(memoryview(bytearray(batch)), RULES, NOW_MS),
        lambda: list(iterate_batches(batch)),
        lambda: read_records(batch, max_decompressed_bytes=1 << 20),
    ):
        with suppress(KafkaError):
            reading()


def reseal(batch: bytearray) -> None:
    try:
        header = read_header(batch)
    except CorruptBatch:
        return
    if header.size_bytes == len(batch):
        write_header(batch, 0, header)


@law
@given(records(), codecs, st.lists(st.tuples(st.integers(0), st.integers(0, 255)), max_size=4))
def test_a_changed_batch_with_a_valid_checksum_raises_only_known_errors(
    given_records: list[Record], codec: Codec, changes: list[tuple[int, int]]
) -> None:
    batch = build_batch(given_records, codec=codec)
    for position, byte in changes:
        batch[position % len(batch)] = byte
    reseal(batch)
    survive(batch)


@pytest.mark.parametrize("codec", Codec)
def test_edge_values_in_every_byte_raise_only_known_errors(codec: Codec) -> None:
    batch = build_batch([Record(0, NOW_MS, b"k", b"v", [("h", b"x")])] * 2, codec=codec)
    for position in range(len(batch)):
        for byte in TELLING_BYTES:
            changed = bytearray(batch)
            changed[position] = byte
            reseal(changed)
            survive(changed)


@law
@given(st.binary(max_size=300))
def test_random_bytes_raise_only_known_errors(noise: bytes) -> None:
    survive(bytearray(noise))
    batch = build_batch(some_records(1))[:61] + noise
    write_header(batch, 0, read_header(batch)._replace(length=len(batch) - 12))
    survive(batch)


@law
@given(records())
def test_truncated_records_are_corrupt(given_records: list[Record]) -> None:
    body = bytes(build_batch(given_records)[61:])
    for length in range(len(body)):
        with pytest.raises(CorruptBatch):
            _loops.decode(body[:length], len(given_records), 0, given_records[0].timestamp, None)
        assert _loops.walk(body[:length], len(given_records), 0, 0, 0)[1] >= 0


@pytest.mark.parametrize(
    "length",
    [
        b"\x80\x80\x80\x80\x80\x00",  # six bytes for an int32
        b"\x80\x80\x80\x80\x10",  # bits beyond an int32
        b"\xff\xff\xff\xff\x0f",  # the least int32
        b"\xfe\xff\xff\xff\x0f",  # the greatest
        b"\xff" * 10,
        b"\x80",
    ],
)
@pytest.mark.parametrize("field", [0, 3, 4, 6, 8, 9, 11])  # each varint32 of the record below
def test_an_invalid_length_in_any_field_is_corrupt(field: int, length: bytes) -> None:
    body = bytearray(build_batch([Record(0, 0, b"k", b"v", [("h", b"x")])])[61:])
    body[field : field + 1] = length
    if field != 0:
        body[0] += 2 * (len(length) - 1)
    negative_is_null = field in (4, 6, 11) and length == b"\xff\xff\xff\xff\x0f"
    index = _loops.walk(bytes(body), 1, 0, 0, 0)[1]
    assert index >= 0 or negative_is_null
    try:
        _loops.decode(bytes(body), 1, 0, 0, None)
    except CorruptBatch:
        return
    assert field == 3 or negative_is_null  # an offset, in a stored batch, may leave a gap


@pytest.mark.parametrize(
    ("delta", "fits"),
    [
        (b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01", True),  # the greatest int64
        (b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", True),  # the least
        (b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x03", False),  # bits beyond
        (b"\x80" * 10 + b"\x00", False),  # eleven bytes
    ],
)
def test_a_timestamp_has_at_most_ten_bytes(delta: bytes, fits: bool) -> None:
    body = b"\x00" + delta + b"\x00\x01\x01\x00"
    body = bytes([2 * len(body)]) + body
    assert (_loops.walk(body, 1, 0, 0, 0)[1] < 0) is fits
    assert _loops.walk(body, 1, 1 << 62, 0, 0)[1] == (-1 if fits and delta[0] == 0xFF else 0)


def test_a_claimed_number_of_headers_costs_no_memory_or_time() -> None:
    body = b"\x00\x00\x00\x01\x01" + b"\xfe\xff\xff\xff\x0f"  # 2^31 - 1 headers in no bytes
    body = bytes([2 * len(body)]) + body
    with pytest.raises(CorruptBatch):
        _loops.decode(body, 1, 0, 0, None)


def test_a_claimed_number_of_records_costs_no_memory_or_time() -> None:
    body = bytes(build_batch(some_records(3))[61:])
    with pytest.raises(CorruptBatch):
        _loops.decode(body, 2**31 - 1, 0, 0, None)
    assert _loops.walk(body, 2**31 - 1, 0, 0, 0)[1] == 3


@law
@given(records(), st.randoms(use_true_random=False))
def test_compiled_and_plain_modules_have_the_same_results(
    given_records: list[Record], chance: random.Random
) -> None:
    body = bytearray(build_batch(given_records)[61:])
    for _ in range(chance.randrange(3)):
        body[chance.randrange(len(body))] = chance.choice(TELLING_BYTES)
    count = len(given_records)
    for base_timestamp in (0, -(1 << 63), (1 << 63) - 1):
        assert _loops.walk(body, count, base_timestamp, 5, 1 << 50) == PLAIN.walk(
            body, count, base_timestamp, 5, 1 << 50
        )
    outcomes = []
    for decode in (_loops.decode, PLAIN.decode):
        try:
            outcomes.append(decode(body, count, 1 << 40, 0, None))
        except CorruptBatch as raised:
            outcomes.append(raised.message)
    assert outcomes[0] == outcomes[1]
