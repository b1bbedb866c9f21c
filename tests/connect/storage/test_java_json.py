"""The bytes are those that Kafka Connect's JsonConverter writes."""

import pytest

from barnabas.connect.storage.java_json import (
    UnsupportedValueError,
    encode_java_json,
    hash_map_order,
)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, "null"),
        (True, "true"),
        (42, "42"),
        (-(2**63), "-9223372036854775808"),
        ({}, "{}"),
        ({"filename": "/tmp/é\u2028.txt"}, '{"filename":"/tmp/é\u2028.txt"}'),
        ('a"b\\c\n\t\x1f\x00\x7f', '"a\\"b\\\\c\\n\\t\\u001F\\u0000\x7f"'),
        ("\\u001f", '"\\\\u001f"'),
        (1.0, "1.0"),
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (1234567.5, "1234567.5"),
        (1e7, "1.0E7"),
        (1.5e10, "1.5E10"),
        (0.001, "0.001"),
        (0.0001, "1.0E-4"),
        (-1.25e-7, "-1.25E-7"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
        (float("nan"), '"NaN"'),
        (float("-inf"), '"-Infinity"'),
    ],
)
def test_values_are_written_as_jackson_writes_them(value: object, expected: str) -> None:
    assert encode_java_json(value) == expected.encode()


@pytest.mark.parametrize(
    ("put", "iterated"),
    [
        ("table protocol", "protocol table"),
        ("topic partition cluster", "cluster partition topic"),
        (
            "lsn lsn_proc lsn_commit txId ts_usec messageType transaction_id",
            "transaction_id lsn_proc messageType lsn_commit lsn txId ts_usec",
        ),
        ("Aa BB x", "Aa BB x"),  # the first two have the same hash
        ("BB Aa x", "BB Aa x"),
        ("n m l k j i h g f e d c b a", "a b c d e f g h i j k l m n"),  # of 32 buckets
        ("ÿé 日本 😀 server", "server 😀 ÿé 日本"),
    ],
)
def test_maps_have_the_order_of_a_java_hash_map(put: str, iterated: str) -> None:
    """The expected orders are what Java 17 prints."""
    assert hash_map_order(put.split()) == iterated.split()


def test_the_key_of_a_position_is_the_same_bytes_as_java_writes() -> None:
    written = encode_java_json(["jdbc", {"table": "public.t", "protocol": "1"}])
    assert written == b'["jdbc",{"protocol":"1","table":"public.t"}]'
    assert encode_java_json({"table": "t", "protocol": "1"}) == b'{"protocol":"1","table":"t"}'


def test_what_json_has_no_type_for_is_an_error() -> None:
    with pytest.raises(UnsupportedValueError, match="bytes"):
        encode_java_json({"position": b"1"})
