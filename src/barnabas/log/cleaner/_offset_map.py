# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
"""The offset map of compaction: compiled with C types, or run as the Python it is.

An entry has 24 bytes, three integers of 64 bits: both halves of the key's hash, and the offset + 1,
which is 0 for a free slot. In C, `table` and `data` are pointers; in Python they are the buffers
themselves. Both are indexed alike. The fields are in `_offset_map.pxd`.
"""

from __future__ import annotations

import mmap
from contextlib import suppress
from os import urandom

try:
    import cython

    if not cython.compiled:  # Cython's own stand-in for itself is many times slower than ours
        raise ImportError
except ImportError:
    from barnabas.wire.records import _uncompiled as cython

if cython.compiled:
    from cython.cimports.barnabas.wire.records._intrinsics import load_word, prefetch_to_write

    Data = cython.typedef(cython.pointer[cython.const[cython.uchar]])
    Size = cython.typedef(cython.Py_ssize_t)
    Long = cython.typedef(cython.longlong)
    Word = cython.typedef(cython.ulonglong)

COMPILED: bool = cython.compiled

_ENTRY_BYTES = cython.declare(cython.longlong, 24)
_MAX_SLOTS = cython.declare(cython.longlong, 0x7FFFFFFF)

Hash = cython.struct(low=cython.ulonglong, high=cython.ulonglong)
Lanes = cython.struct(
    v0=cython.ulonglong, v1=cython.ulonglong, v2=cython.ulonglong, v3=cython.ulonglong
)


@cython.final
@cython.cclass
class OffsetMap:
    """The last offset of each key, by a hash of the key, in bounded memory.

    Equal hashes are taken for equal keys. A hash has 128 bits and depends on a secret of the map,
    so that nobody can choose keys that collide. A key whose slot is taken goes to the next free
    one.

    Compiled callers first request a group of keys, then find or put each: a map is much larger
    than the caches of a processor, and the slots of a group come from memory at the same time.
    """

    def __init__(self, memory_bytes: Long, load_factor: float) -> None:
        slots: Long = memory_bytes // _ENTRY_BYTES
        if not 0 < load_factor <= 1:
            raise ValueError(f"The load factor is in (0, 1]; it is {load_factor}.")
        if slots > _MAX_SLOTS or slots * load_factor <= 1:
            raise ValueError(f"An offset map of {memory_bytes} bytes is too small or too large.")
        self.memory = _zeros_in_large_pages(slots * _ENTRY_BYTES)
        table: cython.ulonglong[::1] = memoryview(self.memory).cast("Q")
        self.table = cython.address(table[0]) if cython.compiled else table
        self.slots = slots
        self.limit = int(slots * load_factor)
        self.count = 0
        self.latest_offset = -1
        if not cython.compiled:
            self.low_halves, self.high_halves = [0] * 16, [0] * 16
        self.set_secret(urandom(16))

    def __len__(self) -> int:
        return self.count

    @property
    def utilization(self) -> float:
        """The share of slots that are used, from 0 to 1."""
        return self.count / self.slots

    def latest(self, key: cython.const[cython.uchar][::1]) -> int:
        """Returns the last offset of the key, or -1 if it has none."""
        self.request(0, cython.address(key[0]) if cython.compiled else key, 0, len(key))
        return self.find(0)

    def request(self, index, data, position, size):
        """Computes the hash of a key, number `index` of up to 16, and requests its slot."""
        key: Hash = _hash(self, data, position, size)
        self.low_halves[index] = key.low
        self.high_halves[index] = key.high
        if cython.compiled:
            prefetch_to_write(cython.address(self.table[_slot(self, key.low)]))

    def prefetch(self, data, position, size):
        """Requests the slot of a key for later."""
        key: Hash = _hash(self, data, position, size)
        if cython.compiled:
            prefetch_to_write(cython.address(self.table[_slot(self, key.low)]))

    def find(self, index):
        """Returns the offset of a requested key, or -1 if it has none."""
        low: Word = self.low_halves[index]
        high: Word = self.high_halves[index]
        at: Long = _slot(self, low)
        left: Long = self.slots
        while left > 0 and self.table[at + 2] != 0:
            if self.table[at] == low and self.table[at + 1] == high:
                return cython.cast(cython.longlong, self.table[at + 2]) - 1
            at = _next_slot(self, at)
            left -= 1
        return -1

    def put(self, index, offset):
        """Sets the offset of a requested key, for which there is a free slot."""
        low: Word = self.low_halves[index]
        high: Word = self.high_halves[index]
        at: Long = _slot(self, low)
        while self.table[at + 2] != 0:
            if self.table[at] == low and self.table[at + 1] == high:
                break
            at = _next_slot(self, at)
        if self.table[at + 2] == 0:
            self.table[at] = low
            self.table[at + 1] = high
            self.count += 1
        self.table[at + 2] = offset + 1
        self.latest_offset = offset

    def set_secret(self, secret: bytes) -> None:
        """Sets the 16 bytes on which hashes depend, for tests; the map is empty."""
        low, high = int.from_bytes(secret[:8], "little"), int.from_bytes(secret[8:], "little")
        self.lane0 = low ^ 0x736F6D6570736575
        self.lane1 = high ^ 0x646F72616E646F6D ^ 0xEE  # 0xEE: for 128 bits
        self.lane2 = low ^ 0x6C7967656E657261
        self.lane3 = high ^ 0x7465646279746573

    def hash_key(self, key: cython.const[cython.uchar][::1]) -> bytes:
        """Returns the hash of a key, for tests."""
        self.request(0, cython.address(key[0]) if cython.compiled else key, 0, len(key))
        low, high = self.low_halves[0], self.high_halves[0]
        return low.to_bytes(8, "little") + high.to_bytes(8, "little")


@cython.cfunc
def _zeros_in_large_pages(size_bytes: Long) -> object:
    """Returns memory in pages of 2 MiB, if the system has them.

    With small pages, most lookups in a large map also wait for the address of a page, and a
    prefetch waits for it too.
    """
    try:
        memory = mmap.mmap(-1, size_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except OSError as error:
        raise MemoryError(f"There are no {size_bytes} bytes of memory for a map.") from error
    with suppress(AttributeError, OSError):
        memory.madvise(mmap.MADV_HUGEPAGE)
    return memory


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _slot(offset_map: OffsetMap, low: Word) -> Long:
    """Returns where in the table the search for a key begins: 32 bits of the hash, scaled."""
    return ((low >> 32) * offset_map.slots >> 32) * 3


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _next_slot(offset_map: OffsetMap, at: Long) -> Long:
    return at + 3 if at + 3 < offset_map.slots * 3 else 0


# SipHash-2-4 with a result of 128 bits, by Aumasson and Bernstein


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _hash(offset_map: OffsetMap, data: Data, position: Size, size: Long) -> Hash:
    """Returns the hash of a key with the secret of the map."""
    lanes: Lanes = Lanes(offset_map.lane0, offset_map.lane1, offset_map.lane2, offset_map.lane3)
    low: Word
    end: Size = position + (size & ~7)
    while position < end:
        lanes = _absorb(lanes, _word(data, position))
        position += 8
    lanes = _absorb(lanes, _low(size << 56) | _partial_word(data, position, size & 7))
    lanes = _four_rounds(Lanes(lanes.v0, lanes.v1, lanes.v2 ^ 0xEE, lanes.v3))
    low = lanes.v0 ^ lanes.v1 ^ lanes.v2 ^ lanes.v3
    lanes = _four_rounds(Lanes(lanes.v0, lanes.v1 ^ 0xDD, lanes.v2, lanes.v3))
    return Hash(low, lanes.v0 ^ lanes.v1 ^ lanes.v2 ^ lanes.v3)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _absorb(lanes: Lanes, word: Word) -> Lanes:
    lanes = _round(_round(Lanes(lanes.v0, lanes.v1, lanes.v2, lanes.v3 ^ word)))
    return Lanes(lanes.v0 ^ word, lanes.v1, lanes.v2, lanes.v3)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _four_rounds(lanes: Lanes) -> Lanes:
    return _round(_round(_round(_round(lanes))))


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _round(lanes: Lanes) -> Lanes:
    v0: Word = _low(lanes.v0 + lanes.v1)
    v1: Word = _rotate(lanes.v1, 13) ^ v0
    v2: Word = _low(lanes.v2 + lanes.v3)
    v3: Word = _rotate(lanes.v3, 16) ^ v2
    v0 = _low(_rotate(v0, 32) + v3)
    v3 = _rotate(v3, 21) ^ v0
    v2 = _low(v2 + v1)
    v1 = _rotate(v1, 17) ^ v2
    return Lanes(v0, v1, _rotate(v2, 32), v3)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _rotate(word: Word, bits: cython.int) -> Word:
    return _low(word << bits) | word >> (64 - bits)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _low(number: Word) -> Word:
    """The low 64 bits, which C keeps by itself."""
    return number if cython.compiled else number & 0xFFFFFFFFFFFFFFFF


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _word(data: Data, position: Size) -> Word:
    """Returns the little-endian integer of 8 bytes."""
    if cython.compiled:
        return load_word(cython.address(data[position]))
    return int.from_bytes(data[position : position + 8], "little")


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _partial_word(data: Data, position: Size, size: Long) -> Word:
    """Returns the little-endian integer of up to 7 bytes."""
    word: Word = 0
    index: Long
    for index in range(size):
        word |= cython.cast(cython.ulonglong, data[position + index]) << 8 * index
    return word
