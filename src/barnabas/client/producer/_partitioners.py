# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""The hashes of keys that choose partitions: those of Java's producer, librdkafka and Sarama.

Java's is murmur2; `BY_NAME` has librdkafka's names for it and for its own partitioners.
"""

from __future__ import annotations

from zlib import crc32

try:
    import cython

    if not cython.compiled:  # Cython's own pure-Python shim is many times slower than ours
        raise ImportError
except ImportError:
    from barnabas.wire.records import _uncompiled as cython

COMPILED: bool = cython.compiled

if cython.compiled:
    Data = cython.typedef(cython.pointer[cython.const[cython.uchar]])
    Size = cython.typedef(cython.Py_ssize_t)
    Word = cython.typedef(cython.uint)

# Declared as C integers: undeclared constants of 32 bits would be Python objects.
_SEED = cython.declare(cython.ulonglong, 0x9747B28C)
_MIXER = cython.declare(cython.ulonglong, 0x5BD1E995)


def murmur2(key: bytes) -> int:
    """Returns the hash of Java's producer, without its sign."""
    if cython.compiled:
        return _murmur2(cython.cast(Data, cython.cast(cython.p_char, key)), len(key)) & 0x7FFFFFFF
    return _murmur2(key, len(key)) & 0x7FFFFFFF


def fnv1a(key: bytes) -> int:
    """Returns the hash of Sarama and librdkafka: the absolute value of the signed number."""
    hashed: cython.longlong = 0x811C9DC5
    for byte in key:
        hashed = ((hashed ^ byte) * 0x01000193) & 0xFFFFFFFF
    return 0x100000000 - hashed if hashed & 0x80000000 else hashed


BY_NAME = {
    # name: (hash, or None; whether null keys are sticky; whether empty keys are sticky)
    "random": (None, True, True),
    "consistent": (crc32, False, False),
    "consistent_random": (crc32, True, True),
    "murmur2": (murmur2, False, False),
    "murmur2_random": (murmur2, True, False),
    "fnv1a": (fnv1a, False, False),
    "fnv1a_random": (fnv1a, True, False),
}
"""Records without a hash, or with a sticky key, go to the sticky partition (KIP-794)."""


def hash_partitions(
    offsets: cython.const[cython.int][::1],
    validity: cython.const[cython.uchar][::1],
    content: cython.const[cython.uchar][::1],
    first: Size,
    count: Size,
    hash_key: object,
    partitions: cython.int,
    null_partition: cython.int,
    result: cython.int[::1],
) -> None:
    """Writes the partition of every key of a column to `result`; of null keys, `null_partition`.

    The column is in Arrow's three buffers. Without a function `hash_key`, murmur2 is used.
    """
    row: Size
    cell: Size
    start: Size
    stop: Size
    if partitions < 1 or first < 0 or len(result) < count or len(offsets) <= first + count:
        raise ValueError("The column has fewer cells than it claims.")
    if len(validity) > 0 and len(validity) * 8 < first + count:
        raise ValueError("The column has fewer bits of validity than cells.")
    if cython.compiled:
        data: Data = cython.address(content[0]) if len(content) > 0 else cython.NULL
    for row in range(count):
        cell = first + row
        start = offsets[cell]
        stop = offsets[cell + 1]
        if start < 0 or stop < start or stop > len(content):
            raise ValueError(f"Cell {row} of the column is not in its content.")
        if len(validity) > 0 and not validity[cell >> 3] >> (cell & 7) & 1:
            result[row] = null_partition
        elif hash_key is not None:
            result[row] = hash_key(bytes(content[start:stop])) % partitions
        elif cython.compiled:
            result[row] = (_murmur2(data + start, stop - start) & 0x7FFFFFFF) % partitions
        else:
            result[row] = murmur2(bytes(content[start:stop])) % partitions


@cython.cfunc
@cython.exceptval(check=False)
def _murmur2(data: Data, size: Size) -> Word:
    hashed: Word = _word(_SEED ^ size)
    word: Word
    at: Size = 0
    last: Size
    while size - at >= 4:
        word = data[at + 3]
        word = word << 8 | data[at + 2]
        word = word << 8 | data[at + 1]
        word = word << 8 | data[at]
        word = _word(word * _MIXER)
        word ^= word >> 24
        word = _word(word * _MIXER)
        hashed = _word(hashed * _MIXER) ^ word
        at += 4
    if at < size:
        word = 0
        for last in range(size - 1, at - 1, -1):
            word = word << 8 | data[last]
        hashed = _word((hashed ^ word) * _MIXER)
    hashed ^= hashed >> 13
    hashed = _word(hashed * _MIXER)
    return hashed ^ (hashed >> 15)


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _word(number: cython.ulonglong) -> Word:
    """The low 32 bits, which C keeps by itself."""
    return number if cython.compiled else number & 0xFFFFFFFF
