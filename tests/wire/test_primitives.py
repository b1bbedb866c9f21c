"""Edge cases of varints."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.wire.errors import ProtocolViolation
from barnabas.wire.primitives import read_uvarint, write_uvarint

EDGES = [0, 1, 127, 128, 2**14 - 1, 2**14, 2**21 - 1, 2**21, 2**28 - 1, 2**28, 2**31 - 1]


@given(st.one_of(st.sampled_from(EDGES), st.integers(0, 2**31 - 1)))
def test_a_varint_is_read_as_written(value: int) -> None:
    out = bytearray(b"x")
    write_uvarint(out, value)
    assert read_uvarint(bytes(out) + b"rest", 1) == (value, len(out))
    assert len(out) - 1 == max(1, -(-value.bit_length() // 7))


@given(st.sampled_from(EDGES))
def test_a_truncated_varint_is_a_violation(value: int) -> None:
    out = bytearray()
    write_uvarint(out, value)
    with pytest.raises(ProtocolViolation, match="truncated"):
        read_uvarint(out[:-1], 0)


@pytest.mark.parametrize("encoded", [b"\xff\xff\xff\xff\x08", b"\x80" * 5 + b"\x00"])
def test_a_varint_of_more_than_31_bits_is_a_violation(encoded: bytes) -> None:
    with pytest.raises(ProtocolViolation, match="31 bits"):
        read_uvarint(encoded, 0)
