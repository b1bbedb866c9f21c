"""Zigzag varints, as in Avro and in the message indexes of Protobuf payloads.

Each byte has seven bits, the lowest first. Its high bit is set if more bytes follow.
"""

_MAX_BITS = 64


def write_varint(value: int) -> bytes:
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
