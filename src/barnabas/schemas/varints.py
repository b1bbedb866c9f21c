"""Whole numbers as Avro and the indexes of Protobuf messages have them: zigzag, seven bits a byte.

The lowest bits come first, and a byte's high bit says that more follow.
"""

_MOST_BITS = 64


def write_varint(value: int) -> bytes:
    left = value << 1 if value >= 0 else (-value << 1) - 1
    written = bytearray()
    while left > 0x7F:
        written.append(left & 0x7F | 0x80)
        left >>= 7
    written.append(left)
    return bytes(written)


def read_varint(content: bytes, at: int) -> tuple[int, int]:
    """The number, and where the next begins. IndexError where the bytes end before it does."""
    value = shift = 0
    while shift < _MOST_BITS:
        byte = content[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value >> 1 ^ -(value & 1), at
        shift += 7
    raise IndexError(f"a number has no end within {_MOST_BITS} bits")
