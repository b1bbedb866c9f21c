"""The prefix of a payload that was written with a registry's schema, which identifies the schema.

    0x00, four bytes of the schema's id, big-endian
    0x01, sixteen bytes of the schema's guid           (in a header of the record)

For Protobuf, the index path of the message in its file follows: the number of indexes, then the
indexes from the outermost message inwards, as zigzag varints. The first message of a file, the
most common one, is a single zero.
"""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

ID_MAGIC = 0
GUID_MAGIC = 1
ID_PREFIX_BYTES = 5
"""The size of the magic byte and an id."""
GUID_PREFIX_BYTES = 17
MAX_INDEXES = 100
"""Messages are not nested deeper, so a higher number is not a number of indexes."""


class FramingError(ValueError):
    """The bytes do not begin with a valid prefix. The message says why."""


def id_prefix(schema_id: int) -> bytes:
    return bytes((ID_MAGIC,)) + schema_id.to_bytes(4, "big")


def guid_prefix(guid: UUID) -> bytes:
    return bytes((GUID_MAGIC,)) + guid.bytes


def index_encodings(indexes: Sequence[int]) -> tuple[bytes, ...]:
    """Returns the encoding to write first, then any other that clients may have written."""
    encoded = b"".join(map(write_varint, (len(indexes), *indexes)))
    return (b"\0", encoded) if tuple(indexes) == (0,) else (encoded,)


def read_indexes(content: bytes, at: int) -> tuple[tuple[int, ...], int]:
    """Returns the indexes, and the position at which the payload begins."""
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
    """Returns the index path of a message descriptor: in its file, then in enclosing messages."""
    enclosing = message.containing_type
    if enclosing is None:
        return (list(message.file.message_types_by_name).index(message.name),)
    names = [nested_type.name for nested_type in enclosing.nested_types]
    return (*message_indexes(enclosing), names.index(message.name))


_MAX_BITS = 64


def write_varint(value: int) -> bytes:
    """Writes a zigzag varint: seven bits in a byte, the lowest first.

    The high bit of a byte is set if more bytes follow.
    """
    remaining = value << 1 if value >= 0 else (-value << 1) - 1
    encoded = bytearray()
    while remaining > 0x7F:
        encoded.append(remaining & 0x7F | 0x80)
        remaining >>= 7
    encoded.append(remaining)
    return bytes(encoded)


def read_varint(content: bytes, at: int) -> tuple[int, int]:
    """Returns the number and the next position. Raises IndexError if the bytes end within it."""
    value = shift = 0
    while shift < _MAX_BITS:
        byte = content[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value >> 1 ^ -(value & 1), at
        shift += 7
    raise IndexError(f"a number has no end within {_MAX_BITS} bits")
