# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
"""The loops that write columns as Protobuf payloads: compiled with C types, or run as Python.

A message stands after its length, which is known when it is written. So everything is written
from its end to its beginning: the last row first, of each the last field first, of each the
value before its length and its tag.
"""

from __future__ import annotations

from barnabas.columns.protobuf.kinds import Kind, Wire

try:
    import cython

    if not cython.compiled:  # Cython's own stand-in for itself is many times slower than ours
        raise ImportError
except ImportError:
    from barnabas.wire.records import _uncompiled as cython

if cython.compiled:
    from cython.cimports.cpython.bytes import PyBytes_FromStringAndSize
    from cython.cimports.libc.string import memcpy

    Size = cython.typedef(cython.Py_ssize_t)
    Long = cython.typedef(cython.longlong)
    Bits = cython.typedef(cython.ulonglong)
    Byte = cython.typedef(cython.uchar)
else:
    Size = Long = Bits = Byte = int

COMPILED: bool = cython.compiled
MAX_BYTES = 2**31 - 1
"""Of all payloads together: Arrow's offsets are int32."""

_INT32 = cython.declare(cython.longlong, Kind.INT32)
_UINT32 = cython.declare(cython.longlong, Kind.UINT32)
_UINT64 = cython.declare(cython.longlong, Kind.UINT64)
_BOOL = cython.declare(cython.longlong, Kind.BOOL)
_TEXT = cython.declare(cython.longlong, Kind.TEXT)
_BYTES = cython.declare(cython.longlong, Kind.BYTES)
_ENUM = cython.declare(cython.longlong, Kind.ENUM)
_TIMESTAMP = cython.declare(cython.longlong, Kind.TIMESTAMP)
_MESSAGE = cython.declare(cython.longlong, Kind.MESSAGE)

_VARINT = cython.declare(cython.longlong, Wire.VARINT)
_FIXED64 = cython.declare(cython.longlong, Wire.FIXED64)
_SPAN = cython.declare(cython.longlong, Wire.SPAN)
_GROUP = cython.declare(cython.longlong, Wire.GROUP)
_GROUP_END = cython.declare(cython.longlong, Wire.GROUP_END)
_LOW = cython.declare(cython.ulonglong, 0xFFFFFFFF)
_FIRST_SECOND = cython.declare(cython.longlong, -62135596800)
_LAST_SECOND = cython.declare(cython.longlong, 253402300799)


@cython.final
@cython.cclass
class Source:
    """A field and where its values are: the buffers of an Arrow array."""

    name: str
    number: Bits
    kind: cython.int
    wire: cython.int
    inner_wire: cython.int
    is_zigzag: cython.bint
    is_repeated: cython.bint
    is_packed: cython.bint
    is_implicit: cython.bint
    is_required: cython.bint
    symbols: dict
    is_closed: cython.bint
    children: list

    first: Size
    validity: cython.const[cython.uchar][::1]
    is_full: cython.bint
    octets: cython.const[cython.uchar][::1]
    ints: cython.const[cython.int][::1]
    longs: cython.const[cython.longlong][::1]
    content: cython.const[cython.uchar][::1]
    first_list: Size
    list_validity: cython.const[cython.uchar][::1]
    has_all_lists: cython.bint
    starts: cython.const[cython.int][::1]

    def __init__(
        self,
        name: str,
        number: int,
        kind: int,
        wire: int,
        *,
        inner_wire: int = -1,
        is_zigzag: bool = False,
        is_repeated: bool = False,
        is_packed: bool = False,
        is_implicit: bool = False,
        is_required: bool = False,
        symbols: dict | None = None,
        is_closed: bool = False,
        children: list | None = None,
    ) -> None:
        self.name = name
        self.number = number
        self.kind = kind
        self.wire = wire
        self.inner_wire = inner_wire
        self.is_zigzag = is_zigzag
        self.is_repeated = is_repeated
        self.is_packed = is_packed
        self.is_implicit = is_implicit
        self.is_required = is_required
        self.symbols = symbols or {}
        self.is_closed = is_closed
        self.children = children or []

    def bind(self, first, validity, octets, ints, longs, content) -> None:
        """Values are those from the first on. No validity: all are there."""
        self.first = first
        self.validity = validity
        self.is_full = len(validity) == 0
        self.octets = octets
        self.ints = ints
        self.longs = longs
        self.content = content

    def bind_lists(self, first, validity, starts) -> None:
        self.first_list = first
        self.list_validity = validity
        self.has_all_lists = len(validity) == 0
        self.starts = starts

    @cython.cfunc
    @cython.inline
    @cython.exceptval(check=False)
    def has(self, index: Size) -> cython.bint:
        return self.is_full or _is_set(self.validity, self.first + index)

    @cython.cfunc
    @cython.inline
    @cython.exceptval(check=False)
    def has_list(self, index: Size) -> cython.bint:
        return self.has_all_lists or _is_set(self.list_validity, self.first_list + index)

    @cython.cfunc
    @cython.exceptval(-100, check=True)
    def bits(self, index: Size) -> Bits:
        """A number as it is written."""
        number: Long
        at: Size = self.first + index
        if self.kind == _INT32:
            number = self.ints[at]
            if self.is_zigzag:
                return _bits((number << 1) ^ (number >> 31)) & _LOW
            return _bits(number)
        if self.kind == _BOOL:
            return 1 if _is_set(self.octets, at) else 0
        if self.kind == _ENUM:
            return self._symbol(_cut(self.content, self.ints[at], self.ints[at + 1]))
        if self.kind == _UINT64:
            if self.longs[2 * at + 1]:
                raise ValueError(f"Field {self.name}: the number is not within 0 and 2**64 - 1.")
            return _bits(self.longs[2 * at])
        number = self.longs[at]
        if self.kind == _UINT32 and (number < 0 or number >> 32):
            raise ValueError(f"Field {self.name}: {number} is not within 0 and 2**32 - 1.")
        if self.is_zigzag:
            return _bits(_doubled(number) ^ (number >> 63))
        return _bits(number)

    @cython.cfunc
    @cython.exceptval(-100, check=True)
    def _symbol(self, name: bytes) -> Bits:
        number = self.symbols.get(name)
        if number is None and not self.is_closed:
            try:
                number = int(name)
            except ValueError:
                number = None
        if number is None or not -(2**31) <= number < 2**31:
            known = ", ".join(one.decode() for one in self.symbols)
            raise ValueError(f"Field {self.name}: {name.decode()!r} is none of {known}.")
        signed: Long = number
        return _bits(signed)

    @cython.cfunc
    @cython.exceptval(-100, check=False)
    def is_zero(self, index: Size) -> cython.int:
        """Whether the value goes without saying."""
        at: Size = self.first + index
        if self.kind == _TEXT or self.kind == _BYTES:
            return self.ints[at] == self.ints[at + 1]
        if self.kind == _MESSAGE or self.kind == _TIMESTAMP:
            return False
        return self.bits(index) == 0


@cython.final
@cython.cclass
class Writer:
    """Bytes that grow to the front."""

    store: bytearray
    octets: cython.uchar[::1]
    capacity: Size
    written: Size
    """Bytes so far: the last ones of the store."""

    def __init__(self) -> None:
        self.capacity = 4096
        self.store = bytearray(self.capacity)
        self.octets = self.store
        self.written = 0

    def write(self, root: Source, count: Size, prefix: bytes, offsets: cython.int[::1]) -> tuple:
        """All rows, each after the prefix, and their offsets: one more than there are rows.

        Returns the store, and where in it the payloads begin.
        """
        row: Size
        before: cython.const[cython.uchar][::1] = prefix
        for row in range(count - 1, -1, -1):
            offsets[row + 1] = self.written
            if root.has(row):
                self._message(root, row)
                self._put(before, 0, len(before))
            if self.written > MAX_BYTES:
                raise OverflowError("The payloads take more than 2 GiB: give fewer rows.")
        offsets[0] = self.written
        for row in range(count + 1):
            offsets[row] = self.written - offsets[row]
        return self.store, self.capacity - self.written

    @cython.cfunc
    @cython.exceptval(-100, check=False)
    def _message(self, source: Source, index: Size) -> cython.int:
        place: Size
        children: list = source.children
        for place in range(len(children) - 1, -1, -1):
            self._field(cython.cast(Source, children[place]), index)
        return 0

    @cython.cfunc
    @cython.exceptval(-100, check=False)
    def _field(self, source: Source, index: Size) -> cython.int:
        if source.is_repeated:
            return self._elements(source, index) if source.has_list(index) else 0
        if not source.has(index):
            if source.is_required:
                raise ValueError(f"Field {source.name} is required, and null.")
            return 0
        if source.is_implicit and source.is_zero(index):
            return 0
        return self._value(source, index)

    @cython.cfunc
    @cython.exceptval(-100, check=False)
    def _elements(self, source: Source, index: Size) -> cython.int:
        at: Size
        first: Size = source.starts[source.first_list + index]
        last: Size = source.starts[source.first_list + index + 1] - 1
        before: Size = self.written
        for at in range(last, first - 1, -1):
            if not source.has(at):
                raise ValueError(f"Field {source.name}: elements of it cannot be null.")
            if source.is_packed:
                self._number(source.wire, source.bits(at))
            else:
                self._value(source, at)
        if source.is_packed and self.written > before:
            self._varint(self.written - before)
            self._tag(source, _SPAN)
        return 0

    @cython.cfunc
    @cython.exceptval(-100, check=False)
    def _value(self, source: Source, index: Size) -> cython.int:
        """A value with what stands before it."""
        before: Size = self.written
        if source.wire == _GROUP:
            self._tag(source, _GROUP_END)
            self._content(source, index)
            return self._tag(source, _GROUP)
        if source.wire != _SPAN:
            self._number(source.wire, source.bits(index))
            return self._tag(source, source.wire)
        if source.inner_wire >= 0:
            if not source.is_zero(index):
                self._wrapped(source, index)
        else:
            self._content(source, index)
        self._varint(self.written - before)
        return self._tag(source, _SPAN)

    @cython.cfunc
    @cython.exceptval(-100, check=False)
    def _content(self, source: Source, index: Size) -> cython.int:
        at: Size = source.first + index
        if source.kind == _MESSAGE:
            return self._message(source, index)
        if source.kind == _TIMESTAMP:
            return self._timestamp(source, source.longs[at])
        return self._put(source.content, source.ints[at], source.ints[at + 1])

    @cython.cfunc
    @cython.exceptval(-100, check=False)
    def _wrapped(self, source: Source, index: Size) -> cython.int:
        before: Size = self.written
        if source.inner_wire == _SPAN:
            self._content(source, index)
            self._varint(self.written - before)
        else:
            self._number(source.inner_wire, source.bits(index))
        return self._varint(8 | source.inner_wire)

    @cython.cfunc
    @cython.exceptval(-100, check=False)
    def _timestamp(self, source: Source, micros: Long) -> cython.int:
        within: Long = micros % 1000000  # as Python has it, in C too: never below zero
        seconds: Long = micros // 1000000
        if seconds < _FIRST_SECOND or seconds > _LAST_SECOND:
            raise ValueError(f"Field {source.name}: the time is outside the years 1 to 9999.")
        if within:
            self._varint(_bits(within * 1000))
            self._varint(16)
        if seconds:
            self._varint(_bits(seconds))
            self._varint(8)
        return 0

    @cython.cfunc
    @cython.exceptval(-100, check=False)
    def _tag(self, source: Source, wire: Long) -> cython.int:
        return self._varint(source.number << 3 | _bits(wire))

    @cython.cfunc
    @cython.exceptval(-100, check=False)
    def _number(self, wire: Long, bits: Bits) -> cython.int:
        size: cython.int
        place: cython.int
        if wire == _VARINT:
            return self._varint(bits)
        size = 8 if wire == _FIXED64 else 4
        at: Size = self._room(size)
        for place in range(size):
            self.octets[at + place] = cython.cast(Byte, bits >> (8 * place) & 0xFF)
        return 0

    @cython.cfunc
    @cython.exceptval(-100, check=False)
    def _varint(self, bits: Bits) -> cython.int:
        size: cython.int = 1
        left: Bits = bits >> 7
        while left:
            size += 1
            left >>= 7
        at: Size = self._room(size)
        while bits > 0x7F:
            self.octets[at] = cython.cast(Byte, bits & 0x7F | 0x80)
            bits >>= 7
            at += 1
        self.octets[at] = cython.cast(Byte, bits)
        return 0

    @cython.cfunc
    @cython.exceptval(-100, check=False)
    def _put(self, content: cython.const[cython.uchar][::1], start: Size, stop: Size) -> cython.int:
        size: Size = stop - start
        if size == 0:
            return 0
        at: Size = self._room(size)
        if cython.compiled:
            memcpy(cython.address(self.octets[at]), cython.address(content[start]), size)
        else:
            self.octets[at : at + size] = content[start:stop]
        return 0

    @cython.cfunc
    @cython.exceptval(-100, check=False)
    def _room(self, size: Size) -> Size:
        """Where that many bytes go, before all that is written."""
        if self.written + size > self.capacity:
            self._grow(size)
        self.written += size
        return self.capacity - self.written

    @cython.cfunc
    @cython.exceptval(-100, check=False)
    def _grow(self, size: Size) -> cython.int:
        capacity: Size = self.capacity
        while capacity < self.written + size:
            capacity *= 2
        moved = bytearray(capacity)
        moved[capacity - self.written :] = memoryview(self.store)[self.capacity - self.written :]
        self.store = moved
        self.octets = moved
        self.capacity = capacity
        return 0


@cython.cfunc
@cython.inline
def _cut(content: cython.const[cython.uchar][::1], start: Size, stop: Size) -> bytes:
    if cython.compiled:
        if start == stop:
            return b""
        return PyBytes_FromStringAndSize(
            cython.cast(cython.p_char, cython.address(content[start])), stop - start
        )
    return bytes(content[start:stop])


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _is_set(bits: cython.const[cython.uchar][::1], index: Size) -> cython.bint:
    return bits[index >> 3] >> (index & 7) & 1


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _bits(number: Long) -> Bits:
    if cython.compiled:
        return cython.cast(Bits, number)
    return number & 0xFFFFFFFFFFFFFFFF


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _doubled(number: Long) -> Long:
    if cython.compiled:
        return cython.cast(Long, cython.cast(Bits, number) << 1)
    return number << 1
