"""Varints and tagged fields: the functions that compiled codecs call.

An unsigned varint holds seven bits a byte, lowest first; the high bit says that more follow.
The protocol's fit in 31 bits, so in five bytes.
"""

from struct import Struct
from typing import TypeAlias

from barnabas.wire.errors import ProtocolViolation

Buffer: TypeAlias = bytes | bytearray | memoryview
"""Anything that messages are read from."""

_LAST_BITS = 0x07
"""The bits that the fifth byte may have: the 29th to 31st."""

_TWO_BYTES = Struct("2B")
_THREE_BYTES = Struct("3B")


def read_uvarint(buffer: Buffer, position: int) -> tuple[int, int]:
    """Returns the number at a position, and the position after it."""
    try:
        first = buffer[position]
        if first < 0x80:
            return first, position + 1
        return continue_uvarint(buffer, position + 1, first)
    except IndexError:
        raise ProtocolViolation("a varint is truncated") from None


def continue_uvarint(buffer: Buffer, position: int, first: int) -> tuple[int, int]:
    """Returns a number of several bytes, of which the first is already read.

    Raises IndexError if the buffer ends within it.
    """
    second = buffer[position]
    if second < 0x80:
        return first & 0x7F | second << 7, position + 1
    third = buffer[position + 1]
    value = first & 0x7F | (second & 0x7F) << 7 | (third & 0x7F) << 14
    if third < 0x80:
        return value, position + 2
    fourth = buffer[position + 2]
    value |= (fourth & 0x7F) << 21
    if fourth < 0x80:
        return value, position + 3
    fifth = buffer[position + 3]
    if fifth > _LAST_BITS:
        raise ProtocolViolation("a varint is longer than 31 bits")
    return value | fifth << 28, position + 4


def write_uvarint(out: bytearray, value: int) -> None:
    """Appends a number."""
    if value < 0x80:
        out.append(value)
    elif value < 1 << 14:
        out += _TWO_BYTES.pack(value & 0x7F | 0x80, value >> 7)
    elif value < 1 << 21:
        out += _THREE_BYTES.pack(value & 0x7F | 0x80, value >> 7 & 0x7F | 0x80, value >> 14)
    else:
        while value > 0x7F:
            out.append(value & 0x7F | 0x80)
            value >>= 7
        out.append(value)


def read_tags(
    buffer: memoryview, position: int, end: int, count: int
) -> tuple[dict[int, bytes] | None, int]:
    """Returns unknown tagged fields by tag, and the position after them."""
    tags: dict[int, bytes] = {}
    if count > 0x7F:
        count, position = continue_uvarint(buffer, position, count)
    for _ in range(count):
        tag, position = read_uvarint(buffer, position)
        size_bytes, position = read_uvarint(buffer, position)
        field_end = position + size_bytes
        if field_end > end:
            raise ProtocolViolation(
                f"tagged field {tag} claims {size_bytes} bytes of the {end - position} left"
            )
        tags[tag] = buffer[position:field_end].tobytes()
        position = field_end
    return tags or None, position


def write_tags(out: bytearray, tags: dict[int, bytes]) -> None:
    """Appends tagged fields in the order of their tags; the count is already written."""
    for tag in sorted(tags):
        write_uvarint(out, tag)
        write_uvarint(out, len(tags[tag]))
        out += tags[tag]
