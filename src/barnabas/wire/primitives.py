"""Numbers of varying length and tagged fields: what compiled codecs call instead of inlining.

An unsigned varint holds seven bits a byte, lowest first; the high bit says that more follow.
The protocol's fit in 31 bits, so in five bytes.
"""

from barnabas.wire.errors import ProtocolViolation

_LONGEST_VARINT_BYTES = 5
_LARGEST_VARINT = 2**31 - 1


def read_uvarint(buffer: bytes | bytearray | memoryview, position: int) -> tuple[int, int]:
    """The number at a position, and the position after it."""
    try:
        first = buffer[position]
        if first < 0x80:
            return first, position + 1
        return continue_uvarint(buffer, position + 1, first)
    except IndexError:
        raise ProtocolViolation("a varint is cut short") from None


def continue_uvarint(
    buffer: bytes | bytearray | memoryview, position: int, first: int
) -> tuple[int, int]:
    """The rest of a number whose first byte, already read, said that more follow.

    IndexError when the buffer ends before it does.
    """
    value = first & 0x7F
    for shift in range(7, 7 * _LONGEST_VARINT_BYTES, 7):
        byte = buffer[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value > _LARGEST_VARINT:
                raise ProtocolViolation(f"a varint holds {value}, more than 31 bits")
            return value, position
    raise ProtocolViolation(f"a varint is longer than {_LONGEST_VARINT_BYTES} bytes")


def write_uvarint(out: bytearray, value: int) -> None:
    """Append a number."""
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def read_tags(
    buffer: memoryview, position: int, end: int, count: int
) -> tuple[dict[int, bytes] | None, int]:
    """Tagged fields that nobody here knows, by tag, and the position after them."""
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
    """Append tagged fields in the order of their tags; their count was written before."""
    for tag in sorted(tags):
        write_uvarint(out, tag)
        write_uvarint(out, len(tags[tag]))
        out += tags[tag]
