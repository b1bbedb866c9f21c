"""Decimals as bytes: the unscaled value in two's complement, the highest byte first.

Avro has decimals in this form, so the loops of its columns are used.
"""

from __future__ import annotations

from decimal import Context, Decimal
from typing import TYPE_CHECKING

from barnabas.columns.avro.payload_decoder import AvroDecoder
from barnabas.columns.avro.payload_encoder import AvroEncoder
from barnabas.connect.data.schema import MAX_DECIMAL128_DIGITS
from barnabas.schemas.avro.model import AvroPrimitive

if TYPE_CHECKING:
    import pyarrow as pa

_EXACT = Context(prec=200)
"""Python's own context rounds to 28 digits."""
_MAX_SIZE = 63
"""Avro has the length of a value before it: up to here it takes one byte."""


def decimal_of(unscaled: int, scale: int) -> Decimal:
    """Returns the decimal with all of its digits."""
    return Decimal(unscaled).scaleb(-scale, _EXACT)


def unscaled_value(number: Decimal, scale: int) -> int:
    return int(number.scaleb(scale, _EXACT))


def decimals_to_bytes(values: pa.Array) -> pa.BinaryArray:
    """Raises ArrowInvalid if a value has too many digits."""
    import pyarrow as pa
    import pyarrow.compute as pc

    arrow_type = pa.decimal128(MAX_DECIMAL128_DIGITS, values.type.scale)
    encoder = AvroEncoder(_avro_type(values.type.scale), arrow_type, None)
    return pc.binary_slice(encoder.encode(values.cast(arrow_type)), 1, 1 + _MAX_SIZE)


def decimals_from_bytes(values: pa.BinaryArray, scale: int) -> pa.Decimal128Array:
    """Raises ValueError if a value has too many digits."""
    import pyarrow as pa
    import pyarrow.compute as pc

    sizes = pc.binary_length(values)
    if (pc.max(sizes).as_py() or 0) > _MAX_SIZE:
        raise ValueError("A decimal has too many digits.")
    lengths = pa.array([bytes([2 * size]) for size in range(_MAX_SIZE + 1)], pa.binary())
    payloads = pc.binary_join_element_wise(lengths.take(sizes), values, pa.scalar(b""))
    decoded = AvroDecoder(_avro_type(scale), _avro_type(scale), framed=False).decode(payloads)
    if decoded.reasons is not None:
        raise ValueError("A decimal has too many digits.")
    return decoded.values


def _avro_type(scale: int) -> AvroPrimitive:
    digits = MAX_DECIMAL128_DIGITS
    return AvroPrimitive("bytes", {"logicalType": "decimal", "precision": digits, "scale": scale})
