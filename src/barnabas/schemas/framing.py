"""What stands before a payload that was written through a registry: which schema it is of.

    0x00, four bytes of the schema's id, big-endian
    0x01, sixteen bytes of the schema's guid           (in a header of the record)

Protobuf has the message's place in its file after that: how many indexes, then the indexes from
the outermost message inwards, as zigzag varints. The first message of a file, which most payloads
are, is a single zero.
"""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from barnabas.schemas.varints import read_varint, write_varint

ID_MAGIC = 0
GUID_MAGIC = 1
ID_PREFIX_BYTES = 5
"""Of the magic byte and an id."""
GUID_PREFIX_BYTES = 17
MAX_INDEXES = 100
"""No message is nested deeper: so many indexes are not indexes."""


class FramingError(ValueError):
    """The bytes do not begin as they should; says how."""


def id_prefix(schema_id: int) -> bytes:
    return bytes((ID_MAGIC,)) + schema_id.to_bytes(4, "big")


def guid_prefix(guid: UUID) -> bytes:
    return bytes((GUID_MAGIC,)) + guid.bytes


def index_encodings(indexes: Sequence[int]) -> tuple[bytes, ...]:
    """As indexes are to be written, and as others may have written them."""
    written = b"".join(map(write_varint, (len(indexes), *indexes)))
    return (b"\0", written) if tuple(indexes) == (0,) else (written,)


def read_indexes(content: bytes, at: int) -> tuple[tuple[int, ...], int]:
    """The indexes, and where the payload begins."""
    try:
        count, at = read_varint(content, at)
        if count == 0:
            return (0,), at
        if not 0 < count <= MAX_INDEXES:
            raise FramingError(f"{count} message indexes are not those of a message")
        indexes = []
        for _ in range(count):
            index, at = read_varint(content, at)
            indexes.append(index)
    except IndexError:
        raise FramingError("the bytes end within the message indexes") from None
    return tuple(indexes), at


def message_indexes(message: Any) -> tuple[int, ...]:
    """Where the message of a descriptor is: in its file, or in the message around it."""
    around = message.containing_type
    if around is None:
        return (list(message.file.message_types_by_name).index(message.name),)
    names = [nested_type.name for nested_type in around.nested_types]
    return (*message_indexes(around), names.index(message.name))
