"""The schema "bytes": after the schema id, the payload is the bytes without their length.

Confluent's serializers do this, in contrast to Avro.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.columns import DecodedColumn
from barnabas.schemas.avro.model import AvroPrimitive, AvroType
from barnabas.schemas.framing import ID_PREFIX_BYTES, id_prefix

if TYPE_CHECKING:
    import pyarrow as pa

_MAX_BYTES = 2**31 - 1


def is_raw(schema: AvroType) -> bool:
    return (
        isinstance(schema, AvroPrimitive) and schema.kind == "bytes" and schema.logical_type is None
    )


class RawBytesDecoder:
    @property
    def arrow_type(self) -> pa.DataType:
        import pyarrow as pa

        return pa.binary()

    def decode(self, payloads: pa.BinaryArray) -> DecodedColumn:
        import pyarrow.compute as pc

        # Without an end, Arrow 26 fails to slice more than one value.
        return DecodedColumn(pc.binary_slice(payloads, ID_PREFIX_BYTES, _MAX_BYTES), None)


class RawBytesEncoder:
    def __init__(self, schema_id: int) -> None:
        self._header = id_prefix(schema_id)

    def encode(self, values: pa.Array) -> pa.BinaryArray:
        import pyarrow as pa
        import pyarrow.compute as pc

        return pc.binary_join_element_wise(
            pa.scalar(self._header), values.cast(pa.binary()), pa.scalar(b"")
        )
