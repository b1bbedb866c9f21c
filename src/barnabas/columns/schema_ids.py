"""The ids of the schemas that a column of payloads was written with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.columns import _framing
from barnabas.schemas.framing import HEADER_BYTES
from barnabas.wire.records.buffers import view

if TYPE_CHECKING:
    import pyarrow as pa

NO_HEADER = _framing.NO_HEADER
"""In place of the id of a payload that does not begin as it should."""


def schema_ids(payloads: pa.BinaryArray) -> pa.Int64Array:
    """The id each begins with; null where there is no payload."""
    import pyarrow as pa

    count = len(payloads)
    ids = pa.allocate_buffer(count * 8)
    _framing.schema_ids(
        view(payloads.buffers()[1], "i"),
        view(payloads.buffers()[2], "B"),
        payloads.offset,
        view(ids, "q"),
    )
    found = pa.Array.from_buffers(pa.int64(), count, [None, ids])
    if payloads.null_count == 0:
        return found
    import pyarrow.compute as pc

    return pc.if_else(payloads.is_valid(), found, None)


def why_foreign(payload: bytes) -> str:
    """The reason for a payload with no header."""
    if len(payload) < HEADER_BYTES:
        return (
            f"The payload has {len(payload)} bytes, too few for a schema id: it was not written "
            f"through a registry."
        )
    return (
        f"The payload begins with 0x{payload[0]:02x} and not with 0x00 and a schema id: it was "
        f"not written through a registry."
    )
