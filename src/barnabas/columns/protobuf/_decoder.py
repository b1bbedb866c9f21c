# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
"""Decodes Protobuf payloads into columns: compiled with C types, or run as Python.

It is one file because C inlines only within a file.

A message is a sequence of fields in any order, each a tag (a varint: the field number and, in the
lowest three bits, the wire type) and the value:

    0  varint             groups of seven bits, lowest first
    1  eight bytes        little-endian
    2  length, and bytes  text, bytes, a message, or packed numbers
    3  fields up to a tag with 4: a group
    5  four bytes         little-endian

Elements of repeated fields are appended to their column as they are read. Of any other field the
last value is valid, so the value is kept and appended when the message ends. A payload that needs
more (a message in two parts has to be merged, a map has a key twice, a closed enum has an unknown
number) is NOT_CANONICAL: the caller rewrites it with the protobuf library.

Payloads come from the network: every length is checked before anything is read. A malformed
payload leaves no trace, since a column's offsets say how to truncate it.

In C, `Data` is a pointer into the payloads; in Python it is the buffer itself.
"""

from __future__ import annotations

from barnabas.columns._bits import pack_bits
from barnabas.columns.protobuf.field_types import ColumnKind, WireType

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
"""Maximum size of a column: Arrow's offsets are int32."""
MAX_GROUPS = 100
"""Maximum depth of nested groups in unknown fields."""

TRUNCATED = -1
BAD_TAG = -2
BAD_TEXT = -3
BAD_TIMESTAMP = -4
TOO_DEEP = -5
NOT_CANONICAL = -6
OTHER_MESSAGE = -7
BAD_VARINT = -8

_TRUNCATED = cython.declare(cython.longlong, TRUNCATED)
_BAD_TAG = cython.declare(cython.longlong, BAD_TAG)
_BAD_TEXT = cython.declare(cython.longlong, BAD_TEXT)
_BAD_TIMESTAMP = cython.declare(cython.longlong, BAD_TIMESTAMP)
_TOO_DEEP = cython.declare(cython.longlong, TOO_DEEP)
_NOT_CANONICAL = cython.declare(cython.longlong, NOT_CANONICAL)
_BAD_VARINT = cython.declare(cython.longlong, BAD_VARINT)
_MAX_GROUPS = cython.declare(cython.longlong, MAX_GROUPS)

_INT32 = cython.declare(cython.longlong, ColumnKind.INT32)
_INT64 = cython.declare(cython.longlong, ColumnKind.INT64)
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
_FIXED32 = cython.declare(cython.longlong, WireType.FIXED32)

_LOW = cython.declare(cython.ulonglong, 0xFFFFFFFF)
_SEED = cython.declare(cython.ulonglong, 0xCBF29CE484222325)
_PRIME = cython.declare(cython.ulonglong, 0x100000001B3)
_FIRST_SECOND = cython.declare(cython.longlong, -62135596800)
_LAST_SECOND = cython.declare(cython.longlong, 253402300799)

# A value in the payload, which ends at `end`; a negative `end` is an error code. `bits` has a
# number; the bytes of a value with a length are those from `start` to `stop`.
ProtobufValue = cython.struct(
    end=cython.Py_ssize_t,
    bits=cython.ulonglong,
    start=cython.Py_ssize_t,
    stop=cython.Py_ssize_t,
)


@cython.final
@cython.cclass
class ProtobufBuffer:
    """A growing buffer, with views as numbers of three sizes."""

    storage: bytearray
    capacity: Size
    octets: cython.uchar[::1]
    ints: cython.int[::1]
    longs: cython.longlong[::1]

    def __init__(self) -> None:
        self.capacity = 0
        self._grow(1024)

    @cython.cfunc
    @cython.inline
    @cython.exceptval(-100, check=False)
    def reserve(self, size: Size) -> cython.int:
        if size <= self.capacity:
            return 0
        return self._grow(size if size > 2 * self.capacity else 2 * self.capacity)

    @cython.cfunc
    @cython.exceptval(-100, check=False)
    def _grow(self, size: Size) -> cython.int:
        size = (size + 63) // 64 * 64
        grown = bytearray(size)
        if self.capacity:
            grown[: self.capacity] = self.storage
        self.storage = grown
        self.capacity = size
        view = memoryview(grown)
        self.octets = view
        self.ints = view.cast("i")
        self.longs = view.cast("q")
        return 0


@cython.final
@cython.cclass
class ProtobufColumnBuffer:
    """A field's values so far, in Arrow's layout, except that validity and booleans are bytes."""

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
    valid: ProtobufBuffer
    values: ProtobufBuffer
    content: ProtobufBuffer
    starts: ProtobufBuffer

    children: list
    by_number: dict
    child_indexes: cython.int[::1]
    child_index_count: Size
    oneof_cases: cython.int[::1]
    oneof_count: cython.int

    has_value: cython.bint
    last_value: ProtobufValue

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
        self.oneof_cases = memoryview(bytearray(4 * oneof_count + 4)).cast("i")
        self._index()
        self.clear()

    def _index(self) -> None:
        """Index children by field number: in an array, except for very high numbers."""
        child: ProtobufColumnBuffer
        self.by_number = {}
        for index, child in enumerate(self.children):
            self.by_number[child.number] = index
        low = [number for number in self.by_number if number < 4096]
        self.child_index_count = max(low, default=-1) + 1
        self.child_indexes = memoryview(bytearray(4 * self.child_index_count + 4)).cast("i")
        for number in range(self.child_index_count):
            self.child_indexes[number] = self.by_number.get(number, -1)

    def clear(self) -> None:
        """Start with new buffers; the caller of `finish` owns the old ones."""
        self.count = 0
        self.list_count = 0
        self.used = 0
        self.has_value = False
        self.valid = ProtobufBuffer()
        self.values = ProtobufBuffer()
        self.content = ProtobufBuffer()
        self.starts = ProtobufBuffer()
        for child in self.children:
            child.clear()

    def finish(self) -> tuple:
        """Returns length, validity, values, content, number of lists and list offsets."""
        valid = pack_bits(self.valid.storage, self.count) if self.is_nullable else None
        values = self.values.storage
        if self.kind == _BOOL:
            values = pack_bits(values, self.count)
        return self.count, valid, values, self.content.storage, self.list_count, self.starts.storage

    @cython.cfunc
    @cython.exceptval(-100, check=False)
    def child(self, number: Bits) -> cython.int:
        """Returns the index of the child with this field number; -1 if there is none."""
        if number < cython.cast(Bits, self.child_index_count):
            return self.child_indexes[cython.cast(Size, number)]
        if not self.by_number or number < 4096:
            return -1
        return self.by_number.get(number, -1)

    @cython.cfunc
    @cython.exceptval(-100, check=False)
    def truncate(self, count: Size) -> cython.int:
        """Keep only the first `count` values, or lists of a repeated field."""
        child: ProtobufColumnBuffer
        if self.is_repeated:
            self.list_count = count
            count = self.starts.ints[count] if count else 0
        self.count = count
        if self.kind == _TEXT or self.kind == _BYTES or self.kind == _ENUM:
            self.used = self.values.ints[count] if count else 0
        for child in self.children:
            child.truncate(count)
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
        """Count a value that is in the buffers."""
        if self.is_nullable:
            self.valid.reserve(self.count + 1)
            self.valid.octets[self.count] = is_valid
        self.count += 1
        return 0

    @cython.cfunc
    @cython.exceptval(-100, check=False)
    def put_missing(self) -> cython.int:
        """Append an empty list, a null, or zero if the field is not nullable."""
        child: ProtobufColumnBuffer
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
        """Append a value of fixed size, or an empty value of variable size."""
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
            raise OverflowError(
                f"Field {self.name} has more than 2 GiB: decode fewer payloads at a time."
            )
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
        """Append the name of an enum's value; returns False if a closed enum does not have it."""
        symbol: bytes = self.symbols.get(number)
        if symbol is None:
            if self.is_closed:
                return False
            symbol = b"%d" % number
        self.put_bytes(symbol, 0, len(symbol))
        return True


@cython.final
@cython.cclass
class ProtobufReader:
    """Reads payloads into the column of their message and its children."""

    root: ProtobufColumnBuffer
    data: Data
    error_field: str
    """The field that could not be read."""
    is_canonical: cython.bint
    """Whether the protobuf library wrote the payload: maps have no key twice then."""
    table: cython.longlong[::1]

    def __init__(self, root: ProtobufColumnBuffer) -> None:
        self.root = root
        self.error_field = ""
        self.is_canonical = False
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
        """Reads `count` payloads from `first` on. Returns row, error code and field of the failed.

        After the header, each starts with one of the prefixes, unless they are None. `rewrite`
        takes a payload that is NOT_CANONICAL and returns a canonical one, or None if it is invalid.
        Without validity, no payload is null.
        """
        errors: list = []
        index: Size
        before: Size
        code: Size
        at: Size
        end: Size
        has_no_nulls: cython.bint = len(validity) == 0
        if count and (first < 0 or len(offsets) < first + count + 1):
            raise ValueError("There are fewer offsets than payloads.")
        if not has_no_nulls and 8 * len(validity) < first + count:
            raise ValueError("There are fewer bits of validity than payloads.")
        for index in range(first, first + count):
            if not has_no_nulls and not validity[index >> 3] >> (index & 7) & 1:
                self.root.put_missing()
                continue
            at = offsets[index]
            end = offsets[index + 1]
            if at < 0 or end < at or end > len(content):
                raise ValueError("An offset is not within the payloads.")
            self.data = _address(content)
            self.is_canonical = False
            at = self._after_prefix(at + header_bytes, end, prefixes)
            before = self.root.count
            code = at if at < 0 else self._message(self.root, at, end)
            if code == _NOT_CANONICAL:
                self.root.truncate(before)
                code = self._read_rewritten(bytes(content[at:end]), rewrite)
            if code < 0:
                self.root.truncate(before)
                self.root.put_missing()
                errors.append((index - first, code, self.error_field))
        return errors

    @cython.cfunc
    @cython.exceptval(-100, check=False)
    def _after_prefix(self, at: Size, end: Size, prefixes: tuple | None) -> Size:
        if at > end:
            return _TRUNCATED
        if prefixes is None:
            return at
        prefix: bytes
        for prefix in prefixes:
            if _has_prefix(self.data, at, end, prefix):
                return at + len(prefix)
        return OTHER_MESSAGE

    @cython.cfunc
    @cython.exceptval(-100, check=False)
    def _read_rewritten(self, payload: bytes, rewrite) -> Size:
        plain: bytes | None = rewrite(payload)
        if plain is None:
            return _NOT_CANONICAL
        view: cython.const[cython.uchar][::1] = plain
        self.data = _address(view)
        self.is_canonical = True
        return self._message(self.root, 0, len(plain))

    @cython.cfunc
    @cython.exceptval(-100, check=False)
    def _message(self, column: ProtobufColumnBuffer, at: Size, end: Size) -> Size:
        """Append one value of the column. Returns a negative error code for invalid bytes."""
        children: list = column.children
        child: ProtobufColumnBuffer
        index: cython.int
        oneof: cython.int
        code: Size
        tag: ProtobufValue
        value: ProtobufValue
        wire: cython.int
        for index in range(len(children)):
            child = cython.cast(ProtobufColumnBuffer, children[index])
            child.has_value = False
        for oneof in range(column.oneof_count):
            column.oneof_cases[oneof] = -1
        while at < end:
            tag = _tag(self.data, at, end)
            if tag.end < 0:
                return tag.end
            wire = cython.cast(Int, tag.bits & 7)
            value = _value(self.data, tag.end, end, tag.bits)
            if value.end < 0:
                self.error_field = column.name
                return value.end
            at = value.end
            index = column.child(tag.bits >> 3)
            if index < 0:
                continue
            child = cython.cast(ProtobufColumnBuffer, children[index])
            if wire != child.wire:
                if child.is_repeated and wire == _LEN and child.wire != _GROUP:
                    code = self._packed(child, value.start, value.stop)
                    if code < 0:
                        return code
                continue  # another wire type: an unknown field, also for the library
            if child.is_repeated:
                code = self._put(child, value)
                if code < 0:
                    return code
                continue
            if child.oneof >= 0:
                oneof = column.oneof_cases[child.oneof]
                if oneof >= 0 and oneof != index:
                    cython.cast(ProtobufColumnBuffer, children[oneof]).has_value = False
                column.oneof_cases[child.oneof] = index
            if child.has_value and child.is_merged:
                return _NOT_CANONICAL
            child.has_value = True
            child.last_value = value
        for index in range(len(children)):
            child = cython.cast(ProtobufColumnBuffer, children[index])
            if child.is_repeated:
                if child.is_map and not self.is_canonical and self._has_duplicate_keys(child):
                    return _NOT_CANONICAL
                child.close_list()
            elif child.has_value:
                code = self._put(child, child.last_value)
                if code < 0:
                    return code
            else:
                child.put_missing()
        column.mark(True)
        return 0

    @cython.cfunc
    @cython.exceptval(-100, check=False)
    def _put(self, column: ProtobufColumnBuffer, value: ProtobufValue) -> Size:
        if column.inner_wire >= 0:
            value = self._unwrap(column, value)
            if value.end < 0:
                return value.end
        if column.kind == _MESSAGE:
            return self._message(column, value.start, value.stop)
        if column.kind == _TEXT:
            if not _is_text(self.data, value.start, value.stop):
                self.error_field = column.name
                return _BAD_TEXT
            column.put_bytes(self.data, value.start, value.stop)
        elif column.kind == _BYTES:
            column.put_bytes(self.data, value.start, value.stop)
        elif column.kind == _ENUM:
            if not column.put_symbol(_int32(value.bits)):
                return _NOT_CANONICAL
        elif column.kind == _TIMESTAMP:
            return self._put_timestamp(column, value.start, value.stop)
        else:
            column.put_number(_zigzag(column, value.bits), True)
        return 0

    @cython.cfunc
    @cython.exceptval(-100, check=False)
    def _packed(self, column: ProtobufColumnBuffer, at: Size, end: Size) -> Size:
        """Read packed numbers; for other types it is an unknown field."""
        value: ProtobufValue
        code: Size
        if column.wire == _LEN:
            return 0
        while at < end:
            value = _value(self.data, at, end, column.wire)
            if value.end < 0:
                self.error_field = column.name
                return value.end
            at = value.end
            code = self._put(column, value)
            if code < 0:
                return code
        return 0

    @cython.cfunc
    @cython.exceptval(check=False)
    def _unwrap(self, column: ProtobufColumnBuffer, wrapper: ProtobufValue) -> ProtobufValue:
        """Returns field 1 of a wrapper such as google.protobuf.Int32Value; by default zero."""
        at: Size = wrapper.start
        content: ProtobufValue = _make_value(wrapper.stop, 0, wrapper.stop, wrapper.stop)
        tag: ProtobufValue
        value: ProtobufValue
        while at < wrapper.stop:
            tag = _tag(self.data, at, wrapper.stop)
            if tag.end < 0:
                return tag
            value = _value(self.data, tag.end, wrapper.stop, tag.bits)
            if value.end < 0:
                self.error_field = column.name
                return value
            at = value.end
            if tag.bits == cython.cast(Bits, 8 | column.inner_wire):
                content = value
        return content

    @cython.cfunc
    @cython.exceptval(-100, check=False)
    def _put_timestamp(self, column: ProtobufColumnBuffer, at: Size, end: Size) -> Size:
        seconds: Long = 0
        nanos: Long = 0
        tag: ProtobufValue
        value: ProtobufValue
        while at < end:
            tag = _tag(self.data, at, end)
            if tag.end < 0:
                return tag.end
            value = _value(self.data, tag.end, end, tag.bits)
            if value.end < 0:
                self.error_field = column.name
                return value.end
            at = value.end
            if tag.bits == 8:
                seconds = _int64(value.bits)
            elif tag.bits == 16:
                nanos = _int32(value.bits)
        if seconds < _FIRST_SECOND or seconds > _LAST_SECOND or nanos < 0 or nanos > 999999999:
            self.error_field = column.name
            return _BAD_TIMESTAMP
        column.put_number(_bits(seconds * 1000000 + nanos // 1000), True)
        return 0

    @cython.cfunc
    @cython.exceptval(-100, check=False)
    def _has_duplicate_keys(self, entries: ProtobufColumnBuffer) -> cython.int:
        """Whether the hashes of two keys of this map are equal."""
        first: Size = entries.starts.ints[entries.list_count] if entries.list_count else 0
        count: Size = entries.count - first
        if count < 2:
            return False
        keys: ProtobufColumnBuffer = cython.cast(ProtobufColumnBuffer, entries.children[0])
        capacity: Size = 4
        while capacity < 2 * count:
            capacity *= 2
        if len(self.table) < capacity:
            self.table = memoryview(bytearray(8 * capacity)).cast("q")
        position: Size
        index: Size
        probes: cython.int
        key_hash: Long
        for position in range(capacity):
            self.table[position] = 0
        for index in range(first, entries.count):
            key_hash = _hash(keys, index)
            position = cython.cast(Size, key_hash & (capacity - 1))
            probes = 0
            while self.table[position]:
                probes += 1
                if self.table[position] == key_hash or probes > 64:
                    return True
                position = (position + 1) & (capacity - 1)
            self.table[position] = key_hash
        return False


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _varint(data: Data, at: Size, end: Size) -> ProtobufValue:
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
            return _make_value(at, bits, 0, 0)
        shift += 7
        if shift > 63:
            return _make_value(_BAD_VARINT, 0, 0, 0)
    return _make_value(_TRUNCATED, 0, 0, 0)


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _tag(data: Data, at: Size, end: Size) -> ProtobufValue:
    tag: ProtobufValue = _varint(data, at, end)
    if tag.end >= 0 and (tag.bits < 8 or tag.bits >> 32 or tag.end - at > 5):
        return _make_value(_BAD_TAG, 0, 0, 0)
    return tag


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _value(data: Data, at: Size, end: Size, tag: Bits) -> ProtobufValue:
    """Returns the value after a tag. The field number only matters for a group."""
    wire: cython.int = cython.cast(Int, tag & 7)
    size: ProtobufValue
    if wire == _VARINT:
        return _varint(data, at, end)
    if wire == _LEN:
        size = _varint(data, at, end)
        if size.end < 0:
            return size
        if size.bits > cython.cast(Bits, end - size.end):
            return _make_value(_TRUNCATED, 0, 0, 0)
        at = size.end + cython.cast(Size, size.bits)
        return _make_value(at, 0, size.end, at)
    if wire == _FIXED64:
        if end - at < 8:
            return _make_value(_TRUNCATED, 0, 0, 0)
        return _make_value(at + 8, _little(data, at, 8), 0, 0)
    if wire == _FIXED32:
        if end - at < 4:
            return _make_value(_TRUNCATED, 0, 0, 0)
        return _make_value(at + 4, _little(data, at, 4), 0, 0)
    if wire == _GROUP:
        return _group(data, at, end, tag >> 3, 0)
    return _make_value(_BAD_TAG, 0, 0, 0)


@cython.cfunc
@cython.exceptval(check=False)
def _group(data: Data, at: Size, end: Size, number: Bits, depth: cython.int) -> ProtobufValue:
    """Returns the fields up to the tag that ends the group."""
    start: Size = at
    tag: ProtobufValue
    value: ProtobufValue
    if depth > _MAX_GROUPS:
        return _make_value(_TOO_DEEP, 0, 0, 0)
    while at < end:
        tag = _tag(data, at, end)
        if tag.end < 0:
            return tag
        if tag.bits & 7 == cython.cast(Bits, _GROUP_END):
            if tag.bits >> 3 != number:
                return _make_value(_BAD_TAG, 0, 0, 0)
            return _make_value(tag.end, 0, start, at)
        if tag.bits & 7 == cython.cast(Bits, _GROUP):
            value = _group(data, tag.end, end, tag.bits >> 3, depth + 1)
        else:
            value = _value(data, tag.end, end, tag.bits)
        if value.end < 0:
            return value
        at = value.end
    return _make_value(_TRUNCATED, 0, 0, 0)


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _make_value(end: Size, bits: Bits, start: Size, stop: Size) -> ProtobufValue:
    return ProtobufValue(end, bits, start, stop)


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
            elif lead == 0xED:  # a surrogate of UTF-16 would follow
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
def _has_prefix(data: Data, at: Size, end: Size, prefix: bytes) -> cython.bint:
    index: Size
    if end - at < len(prefix):
        return False
    for index in range(len(prefix)):  # noqa: SIM110 (a generator would not be C)
        if data[at + index] != cython.cast(Byte, prefix[index]):
            return False
    return True


@cython.cfunc
@cython.exceptval(check=False)
def _hash(keys: ProtobufColumnBuffer, index: Size) -> Long:
    """Returns the hash of a key, which is never zero."""
    bits: Bits = _SEED
    at: Size
    if keys.kind == _TEXT:
        for at in range(keys.values.ints[index], keys.values.ints[index + 1]):
            bits = _mix(bits, keys.content.octets[at])
    elif keys.kind == _INT32:
        bits = _mix(bits, _bits(keys.values.ints[index]))
    elif keys.kind == _BOOL:
        bits = _mix(bits, keys.values.octets[index])
    elif keys.kind == _UINT64:
        bits = _mix(bits, _bits(keys.values.longs[2 * index]))
    else:
        bits = _mix(bits, _bits(keys.values.longs[index]))
    bits ^= bits >> 29
    return _int64(bits if bits else 1)


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _mix(bits: Bits, more: Bits) -> Bits:
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
def _zigzag(column: ProtobufColumnBuffer, bits: Bits) -> Bits:
    """Decodes zigzag (0, 1, 2, 3 mean 0, -1, 1, -2) if the type has it."""
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
        if len(view) == 0:
            return cython.NULL
        return cython.address(view[0])
    return view
