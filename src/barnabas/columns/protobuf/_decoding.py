# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
"""The loops that read Protobuf payloads into columns: compiled with C types, or run as Python.

They share one file because C inlines only within a file.

A message is fields in any order, each a tag (a varint: the number and, in the lowest three
bits, how the value is written) and the value:

    0  varint             groups of seven bits, lowest first
    1  eight bytes        little-endian
    2  length, and bytes  text, bytes, a message, or many numbers one after the other
    3  fields up to a tag with 4: a message, as it was once written
    5  four bytes         little-endian

Elements of repeated fields go to their column as they are met. Of any other field the last one
counts, so what is met is only noted, and goes to the column when the message ends. What asks
for more (a message in two parts is to be merged, a key is twice in a map, an enum's number is
unknown to its closed type) is ODD: the caller has the protobuf library rewrite the payload.

Payloads come from the network: every length is checked before anything is read. A payload that
is malformed leaves no trace, since a column's offsets say how to cut it back.

In C, `Data` is a pointer into the payloads; in Python it is the buffer itself.
"""

from __future__ import annotations

from barnabas.columns._bits import pack_bits
from barnabas.columns.protobuf.kinds import Kind, Wire

try:
    import cython

    if not cython.compiled:  # Cython's own stand-in for itself is many times slower than ours
        raise ImportError
except ImportError:
    from barnabas.wire.records import _uncompiled as cython

if cython.compiled:
    from cython.cimports.libc.string import memcpy

    Data = cython.typedef(cython.pointer[cython.const[cython.uchar]])
    Size = cython.typedef(cython.Py_ssize_t)
    Long = cython.typedef(cython.longlong)
    Bits = cython.typedef(cython.ulonglong)
    Int = cython.typedef(cython.int)
    Byte = cython.typedef(cython.uchar)
else:
    Size = Long = Bits = Int = Byte = int

COMPILED: bool = cython.compiled
MAX_BYTES = 2**31 - 1
"""Of a column: Arrow's offsets are int32."""
MAX_GROUPS = 100
"""Within each other, of fields nobody knows."""

CUT_SHORT = -1
BAD_TAG = -2
BAD_TEXT = -3
BAD_TIMESTAMP = -4
TOO_DEEP = -5
ODD = -6
OTHER_MESSAGE = -7
BAD_VARINT = -8

_CUT_SHORT = cython.declare(cython.longlong, CUT_SHORT)
_BAD_TAG = cython.declare(cython.longlong, BAD_TAG)
_BAD_TEXT = cython.declare(cython.longlong, BAD_TEXT)
_BAD_TIMESTAMP = cython.declare(cython.longlong, BAD_TIMESTAMP)
_TOO_DEEP = cython.declare(cython.longlong, TOO_DEEP)
_ODD = cython.declare(cython.longlong, ODD)
_BAD_VARINT = cython.declare(cython.longlong, BAD_VARINT)
_MAX_GROUPS = cython.declare(cython.longlong, MAX_GROUPS)

_INT32 = cython.declare(cython.longlong, Kind.INT32)
_INT64 = cython.declare(cython.longlong, Kind.INT64)
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
_FIXED32 = cython.declare(cython.longlong, Wire.FIXED32)

_LOW = cython.declare(cython.ulonglong, 0xFFFFFFFF)
_SEED = cython.declare(cython.ulonglong, 0xCBF29CE484222325)
_PRIME = cython.declare(cython.ulonglong, 0x100000001B3)
_FIRST_SECOND = cython.declare(cython.longlong, -62135596800)
_LAST_SECOND = cython.declare(cython.longlong, 253402300799)

# A value where it stands. An end below zero says why there is none. `bits` has a number;
# of what has a length, the bytes are those from `start` to `stop`.
Value = cython.struct(
    end=cython.Py_ssize_t,
    bits=cython.ulonglong,
    start=cython.Py_ssize_t,
    stop=cython.Py_ssize_t,
)


@cython.final
@cython.cclass
class Room:
    """Bytes that grow, seen as numbers of three sizes."""

    store: bytearray
    capacity: Size
    octets: cython.uchar[::1]
    ints: cython.int[::1]
    longs: cython.longlong[::1]

    def __init__(self) -> None:
        self.capacity = 0
        self._move(1024)

    @cython.cfunc
    @cython.inline
    @cython.exceptval(-100, check=False)
    def reserve(self, size: Size) -> cython.int:
        if size <= self.capacity:
            return 0
        return self._move(size if size > 2 * self.capacity else 2 * self.capacity)

    @cython.cfunc
    @cython.exceptval(-100, check=False)
    def _move(self, size: Size) -> cython.int:
        size = (size + 63) // 64 * 64
        moved = bytearray(size)
        if self.capacity:
            moved[: self.capacity] = self.store
        self.store = moved
        self.capacity = size
        seen = memoryview(moved)
        self.octets = seen
        self.ints = seen.cast("i")
        self.longs = seen.cast("q")
        return 0


@cython.final
@cython.cclass
class Column:
    """A field's values so far, in Arrow's layout but for validity and booleans: bytes, not bits."""

    name: str
    number: cython.int
    kind: cython.int
    wire: cython.int
    is_zigzag: cython.bint
    inner_wire: cython.int
    is_repeated: cython.bint
    is_map: cython.bint
    is_nullable: cython.bint
    is_merged: cython.bint
    oneof: cython.int
    symbols: dict
    is_closed: cython.bint
    default: cython.int

    count: Size
    list_count: Size
    used: Size
    valid: Room
    values: Room
    content: Room
    starts: Room

    children: list
    by_number: dict
    slots: cython.int[::1]
    slot_count: Size
    chosen: cython.int[::1]
    oneof_count: cython.int

    is_met: cython.bint
    met: Value

    def __init__(
        self,
        name: str,
        number: int,
        kind: int,
        wire: int,
        *,
        is_zigzag: bool = False,
        inner_wire: int = -1,
        is_repeated: bool = False,
        is_map: bool = False,
        is_nullable: bool = False,
        is_merged: bool = False,
        oneof: int = -1,
        symbols: dict | None = None,
        is_closed: bool = False,
        default: int = 0,
        children: list | None = None,
        oneof_count: int = 0,
    ) -> None:
        self.name = name
        self.number = number
        self.kind = kind
        self.wire = wire
        self.is_zigzag = is_zigzag
        self.inner_wire = inner_wire
        self.is_repeated = is_repeated
        self.is_map = is_map
        self.is_nullable = is_nullable
        self.is_merged = is_merged
        self.oneof = oneof
        self.symbols = symbols or {}
        self.is_closed = is_closed
        self.default = default
        self.children = children or []
        self.oneof_count = oneof_count
        self.chosen = memoryview(bytearray(4 * oneof_count + 4)).cast("i")
        self._index()
        self.clear()

    def _index(self) -> None:
        """The places of children by their numbers: in an array, but for very high ones."""
        child: Column
        self.by_number = {}
        for index, child in enumerate(self.children):
            self.by_number[child.number] = index
        low = [number for number in self.by_number if number < 4096]
        self.slot_count = max(low, default=-1) + 1
        self.slots = memoryview(bytearray(4 * self.slot_count + 4)).cast("i")
        for number in range(self.slot_count):
            self.slots[number] = self.by_number.get(number, -1)

    def clear(self) -> None:
        """Empty, with new buffers: those before belong to whoever took them."""
        self.count = 0
        self.list_count = 0
        self.used = 0
        self.is_met = False
        self.valid = Room()
        self.values = Room()
        self.content = Room()
        self.starts = Room()
        for child in self.children:
            child.clear()

    def taken(self) -> tuple:
        """Its length, validity, values, content, length as a list and that one's offsets."""
        valid = pack_bits(self.valid.store, self.count) if self.is_nullable else None
        values = self.values.store
        if self.kind == _BOOL:
            values = pack_bits(values, self.count)
        return self.count, valid, values, self.content.store, self.list_count, self.starts.store

    @cython.cfunc
    @cython.exceptval(-100, check=False)
    def child(self, number: Bits) -> cython.int:
        """Where the child with this number is, -1 if nowhere."""
        if number < cython.cast(Bits, self.slot_count):
            return self.slots[cython.cast(Size, number)]
        if not self.by_number or number < 4096:
            return -1
        return self.by_number.get(number, -1)

    @cython.cfunc
    @cython.exceptval(-100, check=False)
    def cut(self, count: Size) -> cython.int:
        """Forget all but the first values, or lists where it is repeated."""
        child: Column
        if self.is_repeated:
            self.list_count = count
            count = self.starts.ints[count] if count else 0
        self.count = count
        if self.kind == _TEXT or self.kind == _BYTES or self.kind == _ENUM:
            self.used = self.values.ints[count] if count else 0
        for child in self.children:
            child.cut(count)
        return 0

    @cython.cfunc
    @cython.exceptval(-100, check=False)
    def close_list(self) -> cython.int:
        self.list_count += 1
        self.starts.reserve(4 * self.list_count + 4)
        self.starts.ints[self.list_count] = cython.cast(Int, self.count)
        return 0

    @cython.cfunc
    @cython.exceptval(-100, check=False)
    def mark(self, is_valid: cython.bint) -> cython.int:
        """One value more: its buffers have it, this says so."""
        if self.is_nullable:
            self.valid.reserve(self.count + 1)
            self.valid.octets[self.count] = is_valid
        self.count += 1
        return 0

    @cython.cfunc
    @cython.exceptval(-100, check=False)
    def put_missing(self) -> cython.int:
        """No value: an empty list, null, or zero where the field knows no null."""
        child: Column
        if self.is_repeated:
            return self.close_list()
        if self.kind == _MESSAGE:
            for child in self.children:
                child.put_missing()
            self.mark(not self.is_nullable)
        elif self.kind == _ENUM and not self.is_nullable:
            self.put_symbol(self.default)
        else:
            self.put_number(0, not self.is_nullable)
        return 0

    @cython.cfunc
    @cython.exceptval(-100, check=False)
    def put_number(self, bits: Bits, is_valid: cython.bint) -> cython.int:
        """A value of a fixed size; an empty one of a variable size."""
        count: Size = self.count
        if self.kind == _INT32:
            self.values.reserve(4 * count + 4)
            self.values.ints[count] = _int32(bits)
        elif self.kind == _INT64 or self.kind == _TIMESTAMP:
            self.values.reserve(8 * count + 8)
            self.values.longs[count] = _int64(bits)
        elif self.kind == _UINT32:
            self.values.reserve(8 * count + 8)
            self.values.longs[count] = cython.cast(Long, bits & _LOW)
        elif self.kind == _UINT64:
            self.values.reserve(16 * count + 16)
            self.values.longs[2 * count] = _int64(bits)
            self.values.longs[2 * count + 1] = 0
        elif self.kind == _BOOL:
            self.values.reserve(count + 1)
            self.values.octets[count] = bits != 0
        else:
            self.values.reserve(4 * count + 8)
            self.values.ints[count + 1] = cython.cast(Int, self.used)
        return self.mark(is_valid)

    @cython.cfunc
    @cython.exceptval(-100, check=False)
    def put_bytes(self, data: Data, start: Size, stop: Size) -> cython.int:
        size: Size = stop - start
        used: Size = self.used
        if used + size > MAX_BYTES:
            raise OverflowError(f"Field {self.name} has more than 2 GiB: give fewer payloads.")
        self.content.reserve(used + size)
        if cython.compiled:
            if size:
                memcpy(cython.address(self.content.octets[used]), data + start, size)
        else:
            self.content.octets[used : used + size] = data[start:stop]
        self.used = used + size
        return self.put_number(0, True)

    @cython.cfunc
    @cython.exceptval(-100, check=False)
    def put_symbol(self, number: cython.int) -> cython.int:
        """An enum's value by its name; False where a closed enum does not know it."""
        symbol: bytes = self.symbols.get(number)
        if symbol is None:
            if self.is_closed:
                return False
            symbol = b"%d" % number
        self.put_bytes(symbol, 0, len(symbol))
        return True


@cython.final
@cython.cclass
class Reader:
    """Reads payloads into the column of their message and those under it."""

    root: Column
    data: Data
    fault: str
    """The field with what could not be read."""
    is_plain: cython.bint
    """The library wrote it: no key is in a map twice."""
    table: cython.longlong[::1]

    def __init__(self, root: Column) -> None:
        self.root = root
        self.fault = ""
        self.is_plain = False
        self.table = memoryview(bytearray(8))[:0].cast("q")

    def read(
        self,
        offsets: cython.const[cython.int][::1],
        content: cython.const[cython.uchar][::1],
        validity: cython.const[cython.uchar][::1],
        first: Size,
        count: Size,
        header_bytes: Size,
        prefixes: tuple | None,
        rewrite,
    ) -> list:
        """The payloads from the first on; the rows and reasons of those that could not be.

        After the header, each begins with one of the prefixes, unless they are None. `rewrite`
        takes the bytes of one that is ODD and returns a plain one, or None where there is none.
        No validity: all are there.
        """
        faults: list = []
        index: Size
        before: Size
        code: Size
        at: Size
        end: Size
        everywhere: cython.bint = len(validity) == 0
        if count and (first < 0 or len(offsets) < first + count + 1):
            raise ValueError("There are fewer offsets than payloads.")
        if not everywhere and 8 * len(validity) < first + count:
            raise ValueError("There are fewer bits of validity than payloads.")
        for index in range(first, first + count):
            if not everywhere and not validity[index >> 3] >> (index & 7) & 1:
                self.root.put_missing()
                continue
            at = offsets[index]
            end = offsets[index + 1]
            if at < 0 or end < at or end > len(content):
                raise ValueError("An offset is not within the payloads.")
            self.data = _address(content)
            self.is_plain = False
            at = self._after_prefix(at + header_bytes, end, prefixes)
            before = self.root.count
            code = at if at < 0 else self._message(self.root, at, end)
            if code == _ODD:
                self.root.cut(before)
                code = self._rewritten(bytes(content[at:end]), rewrite)
            if code < 0:
                self.root.cut(before)
                self.root.put_missing()
                faults.append((index - first, code, self.fault))
        return faults

    @cython.cfunc
    @cython.exceptval(-100, check=False)
    def _after_prefix(self, at: Size, end: Size, prefixes: tuple | None) -> Size:
        if at > end:
            return _CUT_SHORT
        if prefixes is None:
            return at
        prefix: bytes
        for prefix in prefixes:
            if _begins(self.data, at, end, prefix):
                return at + len(prefix)
        return OTHER_MESSAGE

    @cython.cfunc
    @cython.exceptval(-100, check=False)
    def _rewritten(self, payload: bytes, rewrite) -> Size:
        plain: bytes | None = rewrite(payload)
        if plain is None:
            return _ODD
        view: cython.const[cython.uchar][::1] = plain
        self.data = _address(view)
        self.is_plain = True
        return self._message(self.root, 0, len(plain))

    @cython.cfunc
    @cython.exceptval(-100, check=False)
    def _message(self, column: Column, at: Size, end: Size) -> Size:
        """One value of the column from the bytes; below zero where there is none."""
        children: list = column.children
        child: Column
        index: cython.int
        oneof: cython.int
        code: Size
        tag: Value
        value: Value
        wire: cython.int
        for index in range(len(children)):
            child = cython.cast(Column, children[index])
            child.is_met = False
        for oneof in range(column.oneof_count):
            column.chosen[oneof] = -1
        while at < end:
            tag = _tag(self.data, at, end)
            if tag.end < 0:
                return tag.end
            wire = cython.cast(Int, tag.bits & 7)
            value = _value(self.data, tag.end, end, tag.bits)
            if value.end < 0:
                self.fault = column.name
                return value.end
            at = value.end
            index = column.child(tag.bits >> 3)
            if index < 0:
                continue
            child = cython.cast(Column, children[index])
            if wire != child.wire:
                if child.is_repeated and wire == _SPAN and child.wire != _GROUP:
                    code = self._packed(child, value.start, value.stop)
                    if code < 0:
                        return code
                continue  # written as another type: the library takes it for unknown, too
            if child.is_repeated:
                code = self._put(child, value)
                if code < 0:
                    return code
                continue
            if child.oneof >= 0:
                oneof = column.chosen[child.oneof]
                if oneof >= 0 and oneof != index:
                    cython.cast(Column, children[oneof]).is_met = False
                column.chosen[child.oneof] = index
            if child.is_met and child.is_merged:
                return _ODD
            child.is_met = True
            child.met = value
        for index in range(len(children)):
            child = cython.cast(Column, children[index])
            if child.is_repeated:
                if child.is_map and not self.is_plain and self._has_twins(child):
                    return _ODD
                child.close_list()
            elif child.is_met:
                code = self._put(child, child.met)
                if code < 0:
                    return code
            else:
                child.put_missing()
        column.mark(True)
        return 0

    @cython.cfunc
    @cython.exceptval(-100, check=False)
    def _put(self, column: Column, value: Value) -> Size:
        if column.inner_wire >= 0:
            value = self._unwrapped(column, value)
            if value.end < 0:
                return value.end
        if column.kind == _MESSAGE:
            return self._message(column, value.start, value.stop)
        if column.kind == _TEXT:
            if not _is_text(self.data, value.start, value.stop):
                self.fault = column.name
                return _BAD_TEXT
            column.put_bytes(self.data, value.start, value.stop)
        elif column.kind == _BYTES:
            column.put_bytes(self.data, value.start, value.stop)
        elif column.kind == _ENUM:
            if not column.put_symbol(_int32(value.bits)):
                return _ODD
        elif column.kind == _TIMESTAMP:
            return self._put_timestamp(column, value.start, value.stop)
        else:
            column.put_number(_zigzag(column, value.bits), True)
        return 0

    @cython.cfunc
    @cython.exceptval(-100, check=False)
    def _packed(self, column: Column, at: Size, end: Size) -> Size:
        """Many numbers without tags; of anything else it is a field nobody knows."""
        value: Value
        code: Size
        if column.wire == _SPAN:
            return 0
        while at < end:
            value = _value(self.data, at, end, column.wire)
            if value.end < 0:
                self.fault = column.name
                return value.end
            at = value.end
            code = self._put(column, value)
            if code < 0:
                return code
        return 0

    @cython.cfunc
    @cython.exceptval(check=False)
    def _unwrapped(self, column: Column, wrapper: Value) -> Value:
        """What is in field 1 of a google.protobuf.Int32Value and the like; zero, else empty."""
        at: Size = wrapper.start
        found: Value = _found(wrapper.stop, 0, wrapper.stop, wrapper.stop)
        tag: Value
        value: Value
        while at < wrapper.stop:
            tag = _tag(self.data, at, wrapper.stop)
            if tag.end < 0:
                return tag
            value = _value(self.data, tag.end, wrapper.stop, tag.bits)
            if value.end < 0:
                self.fault = column.name
                return value
            at = value.end
            if tag.bits == cython.cast(Bits, 8 | column.inner_wire):
                found = value
        return found

    @cython.cfunc
    @cython.exceptval(-100, check=False)
    def _put_timestamp(self, column: Column, at: Size, end: Size) -> Size:
        seconds: Long = 0
        nanos: Long = 0
        tag: Value
        value: Value
        while at < end:
            tag = _tag(self.data, at, end)
            if tag.end < 0:
                return tag.end
            value = _value(self.data, tag.end, end, tag.bits)
            if value.end < 0:
                self.fault = column.name
                return value.end
            at = value.end
            if tag.bits == 8:
                seconds = _int64(value.bits)
            elif tag.bits == 16:
                nanos = _int32(value.bits)
        if seconds < _FIRST_SECOND or seconds > _LAST_SECOND or nanos < 0 or nanos > 999999999:
            self.fault = column.name
            return _BAD_TIMESTAMP
        column.put_number(_bits(seconds * 1000000 + nanos // 1000), True)
        return 0

    @cython.cfunc
    @cython.exceptval(-100, check=False)
    def _has_twins(self, entries: Column) -> cython.int:
        """Whether a key is in this map twice, as far as the keys' hashes say."""
        first: Size = entries.starts.ints[entries.list_count] if entries.list_count else 0
        count: Size = entries.count - first
        if count < 2:
            return False
        keys: Column = cython.cast(Column, entries.children[0])
        room: Size = 4
        while room < 2 * count:
            room *= 2
        if len(self.table) < room:
            self.table = memoryview(bytearray(8 * room)).cast("q")
        place: Size
        index: Size
        steps: cython.int
        mark: Long
        for place in range(room):
            self.table[place] = 0
        for index in range(first, entries.count):
            mark = _hash(keys, index)
            place = cython.cast(Size, mark & (room - 1))
            steps = 0
            while self.table[place]:
                steps += 1
                if self.table[place] == mark or steps > 64:
                    return True
                place = (place + 1) & (room - 1)
            self.table[place] = mark
        return False


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _varint(data: Data, at: Size, end: Size) -> Value:
    bits: Bits = 0
    shift: cython.int = 0
    byte: cython.uchar
    while at < end:
        byte = data[at]
        at += 1
        bits |= cython.cast(Bits, byte & 0x7F) << shift
        if byte < 0x80:
            if not cython.compiled:
                bits &= 0xFFFFFFFFFFFFFFFF
            return _found(at, bits, 0, 0)
        shift += 7
        if shift > 63:
            return _found(_BAD_VARINT, 0, 0, 0)
    return _found(_CUT_SHORT, 0, 0, 0)


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _tag(data: Data, at: Size, end: Size) -> Value:
    tag: Value = _varint(data, at, end)
    if tag.end >= 0 and (tag.bits < 8 or tag.bits >> 32 or tag.end - at > 5):
        return _found(_BAD_TAG, 0, 0, 0)
    return tag


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _value(data: Data, at: Size, end: Size, tag: Bits) -> Value:
    """What follows a tag; of which the number does not matter unless it begins a group."""
    wire: cython.int = cython.cast(Int, tag & 7)
    size: Value
    if wire == _VARINT:
        return _varint(data, at, end)
    if wire == _SPAN:
        size = _varint(data, at, end)
        if size.end < 0:
            return size
        if size.bits > cython.cast(Bits, end - size.end):
            return _found(_CUT_SHORT, 0, 0, 0)
        at = size.end + cython.cast(Size, size.bits)
        return _found(at, 0, size.end, at)
    if wire == _FIXED64:
        if end - at < 8:
            return _found(_CUT_SHORT, 0, 0, 0)
        return _found(at + 8, _little(data, at, 8), 0, 0)
    if wire == _FIXED32:
        if end - at < 4:
            return _found(_CUT_SHORT, 0, 0, 0)
        return _found(at + 4, _little(data, at, 4), 0, 0)
    if wire == _GROUP:
        return _group(data, at, end, tag >> 3, 0)
    return _found(_BAD_TAG, 0, 0, 0)


@cython.cfunc
@cython.exceptval(check=False)
def _group(data: Data, at: Size, end: Size, number: Bits, depth: cython.int) -> Value:
    """The fields up to the tag that ends the group."""
    start: Size = at
    tag: Value
    value: Value
    if depth > _MAX_GROUPS:
        return _found(_TOO_DEEP, 0, 0, 0)
    while at < end:
        tag = _tag(data, at, end)
        if tag.end < 0:
            return tag
        if tag.bits & 7 == cython.cast(Bits, _GROUP_END):
            if tag.bits >> 3 != number:
                return _found(_BAD_TAG, 0, 0, 0)
            return _found(tag.end, 0, start, at)
        if tag.bits & 7 == cython.cast(Bits, _GROUP):
            value = _group(data, tag.end, end, tag.bits >> 3, depth + 1)
        else:
            value = _value(data, tag.end, end, tag.bits)
        if value.end < 0:
            return value
        at = value.end
    return _found(_CUT_SHORT, 0, 0, 0)


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _found(end: Size, bits: Bits, start: Size, stop: Size) -> Value:
    return Value(end, bits, start, stop)


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _little(data: Data, at: Size, size: cython.int) -> Bits:
    bits: Bits = 0
    index: cython.int
    for index in range(size):
        bits |= cython.cast(Bits, data[at + index]) << (8 * index)
    return bits


@cython.cfunc
@cython.exceptval(check=False)
def _is_text(data: Data, at: Size, end: Size) -> cython.bint:
    """Whether the bytes are well-formed UTF-8."""
    lead: cython.uchar
    more: cython.int
    low: cython.uchar
    high: cython.uchar
    while at < end:
        lead = data[at]
        at += 1
        if lead < 0x80:
            continue
        low = 0x80
        high = 0xBF
        if 0xC2 <= lead <= 0xDF:
            more = 1
        elif 0xE0 <= lead <= 0xEF:
            more = 2
            if lead == 0xE0:
                low = 0xA0
            elif lead == 0xED:  # what follows would be half of a pair of UTF-16
                high = 0x9F
        elif 0xF0 <= lead <= 0xF4:
            more = 3
            if lead == 0xF0:
                low = 0x90
            elif lead == 0xF4:
                high = 0x8F
        else:
            return False
        if end - at < more or not low <= data[at] <= high:
            return False
        if more > 1 and data[at + 1] & 0xC0 != 0x80:
            return False
        if more > 2 and data[at + 2] & 0xC0 != 0x80:
            return False
        at += more
    return True


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _begins(data: Data, at: Size, end: Size, prefix: bytes) -> cython.bint:
    index: Size
    if end - at < len(prefix):
        return False
    for index in range(len(prefix)):  # noqa: SIM110 (a generator would not be C)
        if data[at + index] != cython.cast(Byte, prefix[index]):
            return False
    return True


@cython.cfunc
@cython.exceptval(check=False)
def _hash(keys: Column, index: Size) -> Long:
    """Of a key; never zero."""
    bits: Bits = _SEED
    at: Size
    if keys.kind == _TEXT:
        for at in range(keys.values.ints[index], keys.values.ints[index + 1]):
            bits = _mixed(bits, keys.content.octets[at])
    elif keys.kind == _INT32:
        bits = _mixed(bits, _bits(keys.values.ints[index]))
    elif keys.kind == _BOOL:
        bits = _mixed(bits, keys.values.octets[index])
    elif keys.kind == _UINT64:
        bits = _mixed(bits, _bits(keys.values.longs[2 * index]))
    else:
        bits = _mixed(bits, _bits(keys.values.longs[index]))
    bits ^= bits >> 29
    return _int64(bits if bits else 1)


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _mixed(bits: Bits, more: Bits) -> Bits:
    if cython.compiled:
        return (bits ^ more) * _PRIME
    return (bits ^ more) * _PRIME & 0xFFFFFFFFFFFFFFFF


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _int32(bits: Bits) -> cython.int:
    if cython.compiled:
        return cython.cast(Int, bits)
    return ((bits & 0xFFFFFFFF) ^ 0x80000000) - 0x80000000


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _int64(bits: Bits) -> Long:
    if cython.compiled:
        return cython.cast(Long, bits)
    return bits - (1 << 64) if bits >> 63 else bits


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
def _zigzag(column: Column, bits: Bits) -> Bits:
    """The number that was meant: of some types 0, 1, 2, 3 mean 0, -1, 1, -2."""
    if not column.is_zigzag:
        return bits
    if column.kind == _INT32:
        bits &= _LOW
    return (bits >> 1) ^ _bits(-cython.cast(Long, bits & 1))


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _address(view: cython.const[cython.uchar][::1]) -> Data:
    if cython.compiled:
        return cython.NULL if len(view) == 0 else cython.address(view[0])
    return view
