"""A schema that is just "bytes": behind an id stand the bytes themselves, without their length.

So Confluent's serializers have it, other than Avro.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.columns import Decoded
from barnabas.schemas.avro.model import AvroPrimitive, AvroType
from barnabas.schemas.framing import ID_PREFIX_BYTES, id_prefix

if TYPE_CHECKING:
    import pyarrow as pa


def is_raw(schema: AvroType) -> bool:
    return (
        isinstance(schema, AvroPrimitive) and schema.kind == "bytes" and schema.logical_type is None
    )


class RawDecoder:
    @property
    def arrow_type(self) -> pa.DataType:
        import pyarrow as pa

        return pa.binary()

    def decode(self, payloads: pa.BinaryArray) -> Decoded:
        import pyarrow.compute as pc

        return Decoded(pc.binary_slice(payloads, ID_PREFIX_BYTES), None)


class RawEncoder:
    def __init__(self, schema_id: int) -> None:
        self._header = id_prefix(schema_id)

    def encode(self, values: pa.Array) -> pa.BinaryArray:
        import pyarrow as pa
        import pyarrow.compute as pc

        return pc.binary_join_element_wise(
            pa.scalar(self._header), values.cast(pa.binary()), pa.scalar(b"")
        )
