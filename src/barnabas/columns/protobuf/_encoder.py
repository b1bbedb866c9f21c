# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
"""Encodes columns as Protobuf payloads: compiled with C types, or run as Python.

A message follows its length, which is known only after it is written. So everything is written
backwards: the last row first, its last field first, and the value before its length and its tag.
"""

from __future__ import annotations

from barnabas.columns.protobuf.field_types import ColumnKind, WireType

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
"""Maximum size of all payloads together: Arrow's offsets are int32."""

_INT32 = cython.declare(cython.longlong, ColumnKind.INT32)
_UINT32 = cython.declare(cython.longlong, ColumnKind.UINT32)
_UINT64 = cython.declare(cython.longlong, ColumnKind.UINT64)
_BOOL = cython.declare(cython.longlong, ColumnKind.BOOL)
_TEXT = cython.declare(cython.longlong, ColumnKind.TEXT)
_BYTES = cython.declare(cython.longlong, ColumnKind.BYTES)
_ENUM = cython.declare(cython.longlong, ColumnKind.ENUM)
_TIMESTAMP = cython.declare(cython.longlong, ColumnKind.TIMESTAMP)
_MESSAGE = cython.declare(cython.longlong, ColumnKind.MESSAGE)

_VARINT = cython.declare(cython.longlong, WireType.VARINT)
_FIXED64 = cython.declare(cython.longlong, WireType.FIXED64)
_LEN = cython.declare(cython.longlong, WireType.LEN)
_GROUP = cython.declare(cython.longlong, WireType.GROUP)
_GROUP_END = cython.declare(cython.longlong, WireType.GROUP_END)
_LOW = cython.declare(cython.ulonglong, 0xFFFFFFFF)
_FIRST_SECOND = cython.declare(cython.longlong, -62135596800)
_LAST_SECOND = cython.declare(cython.longlong, 253402300799)


@cython.final
@cython.cclass
class ProtobufField:
    """A field and the buffers of the Arrow array with its values."""

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
    has_no_nulls: cython.bint
    octets: cython.const[cython.uchar][::1]
    ints: cython.const[cython.int][::1]
    longs: cython.const[cython.longlong][::1]
    content: cython.const[cython.uchar][::1]
    first_list: Size
    list_validity: cython.const[cython.uchar][::1]
    has_no_null_lists: cython.bint
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
        """Values are those from `first` on. Without validity, no value is null."""
        self.first = first
        self.validity = validity
        self.has_no_nulls = len(validity) == 0
        self.octets = octets
        self.ints = ints
        self.longs = longs
        self.content = content

    def bind_lists(self, first, validity, starts) -> None:
        self.first_list = first
        self.list_validity = validity
        self.has_no_null_lists = len(validity) == 0
        self.starts = starts

    @cython.cfunc
    @cython.inline
    @cython.exceptval(check=False)
    def has(self, index: Size) -> cython.bint:
        return self.has_no_nulls or _is_set(self.validity, self.first + index)

    @cython.cfunc
    @cython.inline
    @cython.exceptval(check=False)
    def has_list(self, index: Size) -> cython.bint:
        return self.has_no_null_lists or _is_set(self.list_validity, self.first_list + index)

    @cython.cfunc
    @cython.exceptval(-100, check=True)
    def bits(self, index: Size) -> Bits:
        """Returns a number in its wire format."""
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
            return self._symbol(_slice(self.content, self.ints[at], self.ints[at + 1]))
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
            names = ", ".join(symbol.decode() for symbol in self.symbols)
            raise ValueError(f"Field {self.name}: {name.decode()!r} is not one of {names}.")
        signed: Long = number
        return _bits(signed)

    @cython.cfunc
    @cython.exceptval(-100, check=False)
    def is_zero(self, index: Size) -> cython.int:
        """Whether the value is the default, which is not written."""
        at: Size = self.first + index
        if self.kind == _TEXT or self.kind == _BYTES:
            return self.ints[at] == self.ints[at + 1]
        if self.kind == _MESSAGE or self.kind == _TIMESTAMP:
            return False
        return self.bits(index) == 0


@cython.final
@cython.cclass
class ProtobufWriter:
    """A buffer that grows to the front."""

    storage: bytearray
    octets: cython.uchar[::1]
    capacity: Size
    written: Size
    """The number of bytes so far, which are at the end of the storage."""

    def __init__(self) -> None:
        self.capacity = 4096
        self.storage = bytearray(self.capacity)
        self.octets = self.storage
        self.written = 0

    def write(
        self, root: ProtobufField, count: Size, prefix: bytes, offsets: cython.int[::1]
    ) -> tuple:
        """Write all rows, each after the prefix, and fill `offsets`, one more than the rows.

        Returns the storage, and where the payloads start in it.
        """
        row: Size
        before: cython.const[cython.uchar][::1] = prefix
        for row in range(count - 1, -1, -1):
            offsets[row + 1] = self.written
            if root.has(row):
                self._message(root, row)
                self._put(before, 0, len(before))
            if self.written > MAX_BYTES:
                raise OverflowError(
                    "The payloads take more than 2 GiB: encode fewer rows at a time."
                )
        offsets[0] = self.written
        for row in range(count + 1):
            offsets[row] = self.written - offsets[row]
        return self.storage, self.capacity - self.written

    @cython.cfunc
    @cython.exceptval(-100, check=False)
    def _message(self, field: ProtobufField, index: Size) -> cython.int:
        position: Size
        children: list = field.children
        for position in range(len(children) - 1, -1, -1):
            self._field(cython.cast(ProtobufField, children[position]), index)
        return 0

    @cython.cfunc
    @cython.exceptval(-100, check=False)
    def _field(self, field: ProtobufField, index: Size) -> cython.int:
        if field.is_repeated:
            return self._elements(field, index) if field.has_list(index) else 0
        if not field.has(index):
            if field.is_required:
                raise ValueError(f"Field {field.name} is required, but null.")
            return 0
        if field.is_implicit and field.is_zero(index):
            return 0
        return self._value(field, index)

    @cython.cfunc
    @cython.exceptval(-100, check=False)
    def _elements(self, field: ProtobufField, index: Size) -> cython.int:
        at: Size
        first: Size = field.starts[field.first_list + index]
        last: Size = field.starts[field.first_list + index + 1] - 1
        before: Size = self.written
        for at in range(last, first - 1, -1):
            if not field.has(at):
                raise ValueError(f"Field {field.name}: elements of it cannot be null.")
            if field.is_packed:
                self._number(field.wire, field.bits(at))
            else:
                self._value(field, at)
        if field.is_packed and self.written > before:
            self._varint(self.written - before)
            self._tag(field, _LEN)
        return 0

    @cython.cfunc
    @cython.exceptval(-100, check=False)
    def _value(self, field: ProtobufField, index: Size) -> cython.int:
        """Write a value, then its length and tag before it."""
        before: Size = self.written
        if field.wire == _GROUP:
            self._tag(field, _GROUP_END)
            self._content(field, index)
            return self._tag(field, _GROUP)
        if field.wire != _LEN:
            self._number(field.wire, field.bits(index))
            return self._tag(field, field.wire)
        if field.inner_wire >= 0:
            if not field.is_zero(index):
                self._wrapped(field, index)
        else:
            self._content(field, index)
        self._varint(self.written - before)
        return self._tag(field, _LEN)

    @cython.cfunc
    @cython.exceptval(-100, check=False)
    def _content(self, field: ProtobufField, index: Size) -> cython.int:
        at: Size = field.first + index
        if field.kind == _MESSAGE:
            return self._message(field, index)
        if field.kind == _TIMESTAMP:
            return self._timestamp(field, field.longs[at])
        return self._put(field.content, field.ints[at], field.ints[at + 1])

    @cython.cfunc
    @cython.exceptval(-100, check=False)
    def _wrapped(self, field: ProtobufField, index: Size) -> cython.int:
        before: Size = self.written
        if field.inner_wire == _LEN:
            self._content(field, index)
            self._varint(self.written - before)
        else:
            self._number(field.inner_wire, field.bits(index))
        return self._varint(8 | field.inner_wire)

    @cython.cfunc
    @cython.exceptval(-100, check=False)
    def _timestamp(self, field: ProtobufField, micros: Long) -> cython.int:
        within: Long = micros % 1000000  # never negative: Cython divides as Python does
        seconds: Long = micros // 1000000
        if seconds < _FIRST_SECOND or seconds > _LAST_SECOND:
            raise ValueError(f"Field {field.name}: the time is outside the years 1 to 9999.")
        if within:
            self._varint(_bits(within * 1000))
            self._varint(16)
        if seconds:
            self._varint(_bits(seconds))
            self._varint(8)
        return 0

    @cython.cfunc
    @cython.exceptval(-100, check=False)
    def _tag(self, field: ProtobufField, wire: Long) -> cython.int:
        return self._varint(field.number << 3 | _bits(wire))

    @cython.cfunc
    @cython.exceptval(-100, check=False)
    def _number(self, wire: Long, bits: Bits) -> cython.int:
        size: cython.int
        position: cython.int
        if wire == _VARINT:
            return self._varint(bits)
        size = 8 if wire == _FIXED64 else 4
        at: Size = self._reserve(size)
        for position in range(size):
            self.octets[at + position] = cython.cast(Byte, bits >> (8 * position) & 0xFF)
        return 0

    @cython.cfunc
    @cython.exceptval(-100, check=False)
    def _varint(self, bits: Bits) -> cython.int:
        size: cython.int = 1
        left: Bits = bits >> 7
        while left:
            size += 1
            left >>= 7
        at: Size = self._reserve(size)
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
        at: Size = self._reserve(size)
        if cython.compiled:
            memcpy(cython.address(self.octets[at]), cython.address(content[start]), size)
        else:
            self.octets[at : at + size] = content[start:stop]
        return 0

    @cython.cfunc
    @cython.exceptval(-100, check=False)
    def _reserve(self, size: Size) -> Size:
        """Reserves `size` bytes before everything written, and returns where they start."""
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
        grown = bytearray(capacity)
        grown[capacity - self.written :] = memoryview(self.storage)[self.capacity - self.written :]
        self.storage = grown
        self.octets = grown
        self.capacity = capacity
        return 0


@cython.cfunc
@cython.inline
def _slice(content: cython.const[cython.uchar][::1], start: Size, stop: Size) -> bytes:
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
