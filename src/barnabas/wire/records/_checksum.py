# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
"""CRC-32C without the GIL, with the processor's instruction or with tables.

`wire/records/checksum.py` has the function of a package, which holds the GIL. Compaction would
acquire it for every batch, and wait for the event loop each time. The instruction computes 8 GB/s,
and three parts of a batch at once up to 22 GB/s; tables, for processors without it, 1.5 GB/s.

In C, `data` is a pointer; in Python it is the buffer itself.
"""

from __future__ import annotations

try:
    import cython

    if not cython.compiled:  # Cython's own stand-in for itself is many times slower than ours
        raise ImportError
except ImportError:
    from barnabas.wire.records import _uncompiled as cython

if cython.compiled:
    from cython.cimports.barnabas.wire.records._intrinsics import (
        crc_by_instruction,
        has_crc_instruction,
        load_word,
        three_crcs,
        three_crcs_by_instruction,
    )

    Data = cython.typedef(cython.pointer[cython.const[cython.uchar]])
    Size = cython.typedef(cython.Py_ssize_t)

COMPILED: bool = cython.compiled

_ALL_BITS = cython.declare(cython.ulonglong, 0xFFFFFFFF)
_PART_BYTES = cython.declare(cython.Py_ssize_t, 1024)

if cython.compiled:
    _tables = cython.declare(cython.ulonglong[2048])
    _shift_tables = cython.declare(cython.uint[1024])
    _has_instruction = cython.declare(cython.bint, has_crc_instruction())
else:
    _tables = [0] * 2048


def crc_of(buffer: cython.const[cython.uchar][::1]) -> int:
    """Returns the checksum as `crc` computes it, for tests."""
    size: Size = len(buffer)
    return crc(cython.address(buffer[0]) if cython.compiled else buffer, size)


def crc_by_table(buffer: cython.const[cython.uchar][::1]) -> int:
    """Returns the checksum as processors without an instruction for it compute it."""
    size: Size = len(buffer)
    return _crc_by_table(cython.address(buffer[0]) if cython.compiled else buffer, size)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def crc(data: Data, size: Size) -> cython.ulonglong:
    """Returns the checksum of bytes; for compiled callers."""
    if cython.compiled and _has_instruction:
        return _crc_by_instruction(data, size)
    return _crc_by_table(data, size)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _crc_by_instruction(data: Data, size: Size) -> cython.ulonglong:
    """Takes three parts at a time, and shifts the checksum of each by the parts after it."""
    crc: cython.uint = 0xFFFFFFFF
    position: Size = 0
    parts: three_crcs
    while size - position >= 3 * _PART_BYTES:
        parts = three_crcs_by_instruction(crc, cython.address(data[position]), _PART_BYTES)
        crc = _shift(_shift(parts.first) ^ parts.second) ^ parts.third
        position += 3 * _PART_BYTES
    if position < size:
        crc = crc_by_instruction(crc, cython.address(data[position]), size - position)
    return _ALL_BITS ^ crc


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _shift(crc: cython.uint) -> cython.uint:
    """Returns the checksum with `_PART_BYTES` zeros after what it was computed of."""
    return (
        _shift_tables[crc & 0xFF]
        ^ _shift_tables[0x100 | (crc >> 8 & 0xFF)]
        ^ _shift_tables[0x200 | (crc >> 16 & 0xFF)]
        ^ _shift_tables[0x300 | crc >> 24]
    )


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _crc_by_table(data: Data, size: Size) -> cython.ulonglong:
    """Takes eight bytes at a time, each through its own table."""
    crc: cython.ulonglong = _ALL_BITS
    word: cython.ulonglong
    position: Size = 0
    while size - position >= 8:
        word = _word(data, position) ^ crc
        crc = (
            _tables[0x700 | (word & 0xFF)]
            ^ _tables[0x600 | (word >> 8 & 0xFF)]
            ^ _tables[0x500 | (word >> 16 & 0xFF)]
            ^ _tables[0x400 | (word >> 24 & 0xFF)]
            ^ _tables[0x300 | (word >> 32 & 0xFF)]
            ^ _tables[0x200 | (word >> 40 & 0xFF)]
            ^ _tables[0x100 | (word >> 48 & 0xFF)]
            ^ _tables[word >> 56]
        )
        position += 8
    while position < size:
        crc = crc >> 8 ^ _tables[(crc ^ data[position]) & 0xFF]
        position += 1
    return crc ^ _ALL_BITS


@cython.cfunc
def _fill_tables() -> cython.bint:
    """Computes the checksum of each byte with 0 to 7 zeros after it."""
    index: cython.int
    crc: cython.ulonglong
    for index in range(256):
        crc = index
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
        _tables[index] = crc
    for index in range(256, 2048):
        crc = _tables[index - 256]
        _tables[index] = crc >> 8 ^ _tables[crc & 0xFF]
    return True


@cython.cfunc
def _fill_shift_tables() -> cython.bint:
    """Computes the shift of each byte of a checksum."""
    index: cython.int
    crc: cython.uint
    zeros: cython.const[cython.uchar][::1] = bytes(_PART_BYTES)
    for index in range(1024):
        crc = cython.cast(cython.uint, index & 0xFF) << 8 * (index >> 8)
        _shift_tables[index] = crc_by_instruction(crc, cython.address(zeros[0]), _PART_BYTES)
    return True


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _word(data: Data, position: Size) -> cython.ulonglong:
    """Returns the little-endian integer of 8 bytes."""
    if cython.compiled:
        return load_word(cython.address(data[position]))
    return int.from_bytes(data[position : position + 8], "little")


_fill_tables()
if cython.compiled and _has_instruction:
    _fill_shift_tables()
