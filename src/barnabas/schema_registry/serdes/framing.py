"""Schema ids of payloads, in the places where confluent_kafka's serializers put them.

That is before the payload, or in a header of the record. `barnabas.schemas.framing` has the bytes.
"""

import io
from collections.abc import Sequence
from typing import Any, NamedTuple
from uuid import UUID

from barnabas.schemas.framing import (
    GUID_MAGIC,
    GUID_PREFIX_BYTES,
    ID_MAGIC,
    ID_PREFIX_BYTES,
    FramingError,
    guid_prefix,
    id_prefix,
    index_encodings,
    read_indexes,
)
from barnabas.serialization import MessageField, SerializationContext, SerializationError

_HEADERS = {MessageField.KEY: "__key_schema_id"}
_VALUE_HEADER = "__value_schema_id"


class SchemaId:
    """A schema's id, its guid, or both; for Protobuf also the index path of the message."""

    __slots__ = ("guid", "id", "message_indexes", "schema_type")

    def __init__(
        self,
        schema_type: str,
        schema_id: int | None = None,
        guid: str | None = None,
        message_indexes: Sequence[int] | None = None,
    ) -> None:
        self.schema_type = schema_type
        self.id = schema_id
        self.guid = None if guid is None else UUID(guid)
        self.message_indexes = message_indexes

    def from_bytes(self, payload: io.BytesIO) -> io.BytesIO:
        """Reads id or guid, and returns the rest: the payload."""
        frame = read_frame(payload.read(), self.schema_type == "PROTOBUF")
        if isinstance(frame.schema, UUID):
            self.guid = frame.schema
        else:
            self.id = frame.schema
        self.message_indexes = frame.message_indexes
        return io.BytesIO(frame.payload)

    def id_to_bytes(self) -> bytes:
        if self.id is None:
            raise SerializationError("the schema has no id")
        return id_prefix(self.id) + self._indexes()

    def guid_to_bytes(self) -> bytes:
        if self.guid is None:
            raise SerializationError(
                f"the registry gave no guid for schema {self.id}: it is too old for ids in headers"
            )
        return guid_prefix(self.guid) + self._indexes()

    def _indexes(self) -> bytes:
        indexes = self.message_indexes
        return b"" if indexes is None else index_encodings(indexes)[0]


class Frame(NamedTuple):
    schema: int | UUID
    message_indexes: tuple[int, ...] | None
    payload: bytes


def read_frame(framed: bytes, with_indexes: bool) -> Frame:
    """Raises SerializationError if the bytes are not framed."""
    if len(framed) < ID_PREFIX_BYTES:
        raise SerializationError(
            f"{len(framed)} bytes are too few for a schema's id: "
            "they were not written with a schema registry's serializer"
        )
    schema: int | UUID
    if framed[0] == ID_MAGIC:
        at = ID_PREFIX_BYTES
        schema = int.from_bytes(framed[1:at], "big")
    elif framed[0] == GUID_MAGIC and len(framed) >= GUID_PREFIX_BYTES:
        at = GUID_PREFIX_BYTES
        schema = UUID(bytes=framed[1:at])
    else:
        raise SerializationError(
            f"the bytes begin with 0x{framed[0]:02x}, not with the magic byte 0x00: "
            "they were not written with a schema registry's serializer"
        )
    if not with_indexes:
        return Frame(schema, None, framed[at:])
    try:
        indexes, at = read_indexes(framed, at)
    except FramingError as problem:
        raise SerializationError(str(problem)) from None
    return Frame(schema, indexes, framed[at:])


def frame_from_header(
    payload: bytes, ctx: SerializationContext | None, with_indexes: bool
) -> Frame | None:
    """Returns the frame that a record header has, or None."""
    value = _schema_header(ctx)
    return None if value is None else read_frame(value, with_indexes)._replace(payload=payload)


def _schema_header(ctx: SerializationContext | None) -> bytes | None:
    """Returns the value of the first header with a schema's guid."""
    headers = None if ctx is None else ctx.headers
    if ctx is None or not headers:
        return None
    header = _HEADERS.get(ctx.field, _VALUE_HEADER)
    for name, value in headers.items() if isinstance(headers, dict) else headers:
        if name == header and value is not None:
            return bytes(value)
    return None


def prefix_schema_id_serializer(
    payload: bytes, ctx: SerializationContext | None, schema_id: Any
) -> bytes:
    """Puts the schema's id before the payload."""
    framed: bytes = schema_id.id_to_bytes() + payload
    return framed


def header_schema_id_serializer(
    payload: bytes, ctx: SerializationContext | None, schema_id: Any
) -> bytes:
    """Puts the schema's guid in a header. The payload stays as it is."""
    if ctx is None or ctx.headers is None:
        raise SerializationError(
            "header_schema_id_serializer needs headers to add to: produce with headers=[]"
        )
    name = _HEADERS.get(ctx.field, _VALUE_HEADER)
    if isinstance(ctx.headers, list):
        ctx.headers.append((name, schema_id.guid_to_bytes()))
    elif isinstance(ctx.headers, dict):
        ctx.headers[name] = schema_id.guid_to_bytes()
    else:
        raise SerializationError(
            f"headers must be a list or a dict, not {type(ctx.headers).__name__}"
        )
    return payload


def prefix_schema_id_deserializer(
    payload: bytes, ctx: SerializationContext | None, schema_id: Any
) -> io.BytesIO:
    """Reads the schema's id before the payload."""
    remaining: io.BytesIO = schema_id.from_bytes(io.BytesIO(payload))
    return remaining


def dual_schema_id_deserializer(
    payload: bytes, ctx: SerializationContext | None, schema_id: Any
) -> io.BytesIO:
    """Reads the schema's guid in a header, or else the id before the payload."""
    value = _schema_header(ctx)
    if value is None:
        return prefix_schema_id_deserializer(payload, ctx, schema_id)
    schema_id.from_bytes(io.BytesIO(value))
    return io.BytesIO(payload)
