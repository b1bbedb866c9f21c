"""The ids of the schemas that a column of payloads was written with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.columns import _schema_ids
from barnabas.schemas.framing import ID_PREFIX_BYTES
from barnabas.wire.records.buffers import view

if TYPE_CHECKING:
    import pyarrow as pa

NO_SCHEMA_ID = _schema_ids.NO_SCHEMA_ID
"""The id of a payload that does not start with a schema id."""


def read_schema_ids(payloads: pa.BinaryArray) -> pa.Int64Array:
    """Returns the id that each payload starts with; null if there is no payload."""
    import pyarrow as pa

    count = len(payloads)
    ids = pa.allocate_buffer(count * 8)
    _schema_ids.read_schema_ids(
        view(payloads.buffers()[1], "i"),
        view(payloads.buffers()[2], "B"),
        payloads.offset,
        view(ids, "q"),
    )
    column = pa.Array.from_buffers(pa.int64(), count, [None, ids])
    if payloads.null_count == 0:
        return column
    import pyarrow.compute as pc

    return pc.if_else(payloads.is_valid(), column, None)


def missing_id_reason(payload: bytes) -> str:
    """Returns the reason for a payload without a schema id."""
    if len(payload) < ID_PREFIX_BYTES:
        return (
            f"The payload has {len(payload)} bytes, too few for a schema id: it was not written "
            f"through a registry."
        )
    return (
        f"The payload starts with 0x{payload[0]:02x} and not with 0x00 and a schema id: it was "
        f"not written through a registry."
    )
