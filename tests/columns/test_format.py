"""A format is a value that travels, and says what its columns are."""

import pickle

import pyarrow as pa
import pytest

from barnabas.columns.format import ColumnFormat, ColumnFormatError


def test_a_format_can_be_pickled() -> None:
    there = ColumnFormat("avro", "orders-value", {"url": "http://localhost:8081"})
    assert pickle.loads(pickle.dumps(there)) == there


def test_binary_payloads_are_unchanged() -> None:
    payloads = pa.array([b"\xff", None, b""], pa.binary())
    decoder = ColumnFormat("binary").decoder()
    decoded = decoder.decode(payloads)
    assert decoder.arrow_type == decoded.values.type == pa.binary()
    assert decoded.values.equals(payloads)
    assert decoded.reasons is None
    assert ColumnFormat("binary").encoder(pa.binary()).encode(payloads).equals(payloads)


def test_text_that_is_not_utf8_is_null_with_a_reason() -> None:
    decoded = ColumnFormat("string").decoder().decode(pa.array([b"a", b"\xff", None, b"\xc3\xa4"]))
    assert decoded.values.to_pylist() == ["a", None, None, "ä"]
    assert decoded.reasons is not None
    assert [reason is not None for reason in decoded.reasons.to_pylist()] == [
        False,
        True,
        False,
        False,
    ]


def test_text_and_numbers_are_written_as_text() -> None:
    encoder = ColumnFormat("string").encoder(pa.int64())
    assert encoder.encode(pa.array([12, None])).to_pylist() == [b"12", None]


def test_a_struct_needs_a_format_with_a_schema() -> None:
    with pytest.raises(ValueError, match="name a format with a schema"):
        ColumnFormat("string").encoder(pa.struct([("a", pa.int64())]))


def test_missing_settings_of_a_format_are_named() -> None:
    with pytest.raises(ColumnFormatError, match="needs a subject"):
        ColumnFormat("avro", registry={"url": "http://localhost:1"}).decoder()
    with pytest.raises(ColumnFormatError, match=r"schema\.registry\.url"):
        ColumnFormat("avro", "orders-value").decoder()
