"""Which message of its file a payload is: the indexes that stand between the id and the bytes.

A count and that many indexes, all zigzag varints: of the message in the file, of the one within
it, and so on. Most payloads are the file's first message: that is written as a single zero.
"""

from collections.abc import Iterator, Sequence
from itertools import islice

MAX_INDEXES = 100


def encodings(indexes: Sequence[int]) -> tuple[bytes, ...]:
    """As it is to be written, and as others may have written it."""
    written = b"".join(map(_varint, (len(indexes), *indexes)))
    return (b"\0", written) if tuple(indexes) == (0,) else (written,)


def read_indexes(payload: bytes) -> tuple[int, ...] | None:
    """None where it is cut short, or no count of indexes at all."""
    numbers = _varints(payload)
    count = next(numbers, None)
    if count is None or not 0 <= count <= MAX_INDEXES:
        return None
    indexes = tuple(islice(numbers, count))
    return indexes or (0,) if len(indexes) == count else None


def _varint(number: int) -> bytes:
    left = number << 1 if number >= 0 else (-number << 1) - 1
    written = bytearray()
    while left >= 0x80:
        written.append(left & 0x7F | 0x80)
        left >>= 7
    written.append(left)
    return bytes(written)


def _varints(payload: bytes) -> Iterator[int]:
    value = shift = 0
    for byte in payload:
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            yield value >> 1 ^ -(value & 1)
            value = shift = 0
        elif shift > 63:
            return
