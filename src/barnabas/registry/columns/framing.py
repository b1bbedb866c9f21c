"""What stands before a payload that was written through a registry: a zero, and the schema's id.

magic      int8    0
schema id  int32   big-endian
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.registry.columns import _framing

if TYPE_CHECKING:
    import pyarrow as pa

HEADER_BYTES = 5
NO_HEADER = _framing.NO_HEADER
"""In place of the id of a payload that does not begin as it should."""

_MAGIC = b"\0"


def header(schema_id: int) -> bytes:
    return _MAGIC + schema_id.to_bytes(4, "big")


def schema_ids(payloads: pa.BinaryArray) -> pa.Int64Array:
    """The id each begins with; null where there is no payload."""
    import pyarrow as pa

    count = len(payloads)
    ids = pa.allocate_buffer(count * 8)
    _framing.schema_ids(
        bytes_view(payloads.buffers()[1], "i"),
        bytes_view(payloads.buffers()[2], "B"),
        payloads.offset,
        bytes_view(ids, "q"),
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


def bytes_view(buffer: pa.Buffer | None, kind: str) -> memoryview:
    """The buffer as a sequence of C's numbers."""
    return memoryview(b"" if buffer is None else buffer).cast("B").cast(kind)  # type: ignore[call-overload, no-any-return]
