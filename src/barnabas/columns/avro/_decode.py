# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
"""Avro's bytes into Arrow's buffers: compiled with C types, or run as the Python it is.

A schema becomes a tree of steps. Each reads one value at the cursor and appends it to a column;
no object is made for a record. Bytes come from the network: every length is checked against the
end of the payload before anything is read.

A step returns 0, or one of the faults, after which nothing more is read of the payload, and the
columns are cut back to where they were before it.

It is one file because C inlines only within a file: with the columns and the cursor in another one
an eighth of the speed is gone.
"""

from __future__ import annotations

try:
    import cython

    if not cython.compiled:  # Cython's own stand-in for itself is many times slower than ours
        raise ImportError
except ImportError:
    from barnabas.wire.records import _uncompiled as cython

if cython.compiled:
    from cython.cimports.cpython.bytearray import PyByteArray_AS_STRING
    from cython.cimports.libc.string import memcpy, memset

    Address = cython.typedef(cython.pointer[cython.const[cython.uchar]])
    Octets = cython.typedef(cython.pointer[cython.uchar])
    Ints = cython.typedef(cython.pointer[cython.int])
    Longs = cython.typedef(cython.pointer[cython.longlong])
    Floats = cython.typedef(cython.pointer[cython.float])
    Doubles = cython.typedef(cython.pointer[cython.double])
    Size = cython.typedef(cython.Py_ssize_t)
    Long = cython.typedef(cython.longlong)
    Word = cython.typedef(cython.ulonglong)

COMPILED: bool = cython.compiled

ENDS = cython.declare(cython.Py_ssize_t, 1)
OVERLONG = cython.declare(cython.Py_ssize_t, 2)
UNFIT = cython.declare(cython.Py_ssize_t, 3)
NOT_TEXT = cython.declare(cython.Py_ssize_t, 4)
NO_MEMBER = cython.declare(cython.Py_ssize_t, 5)
NO_SYMBOL = cython.declare(cython.Py_ssize_t, 6)
NEGATIVE = cython.declare(cython.Py_ssize_t, 7)
NOT_BOOLEAN = cython.declare(cython.Py_ssize_t, 8)
NO_PLACE = cython.declare(cython.Py_ssize_t, 9)
TOO_MANY = cython.declare(cython.Py_ssize_t, 10)
TOO_DEEP = cython.declare(cython.Py_ssize_t, 11)

FAULTS = [
    "",
    "the payload ends within it",
    "a number is longer than 64 bits",
    "a number does not fit its type",
    "text is not UTF-8",
    "a union has no such member",
    "an enum has no such symbol",
    "a length is negative",
    "a boolean is neither 0 nor 1",
    "what was written is of a type that the reader's schema has no place for",
    "its arrays have too many empty items",
    "a record is too often within itself",
]
"""What they are called, by their numbers."""

MOST_EMPTY = cython.declare(cython.Py_ssize_t, 1024)
"""Items of a payload that take no bytes: its size says nothing of them."""
DEEPEST = cython.declare(cython.Py_ssize_t, 1000 if COMPILED else 100)
"""How often a record may be within itself: as far as the stack goes, whoever calls."""


@cython.final
@cython.cclass
class Column:
    """The buffers of an Arrow column while it grows.

    Cells are of one width: values, or offsets into the content or into the items of a list. A
    boolean takes a byte here, as does the validity of a value, until the column is finished.
    """

    width: cython.int
    has_offsets: cython.bint
    is_nullable: cython.bint
    fields: list  # of a struct: as long as it is
    length: Size
    capacity: Size
    mark: Size
    valid_room: bytearray
    valid: Octets
    cell_room: bytearray
    cells: Octets
    ints: Ints
    longs: Longs
    floats: Floats
    doubles: Doubles
    content_room: bytearray
    content_size: Size
    content: Octets

    def __init__(
        self, width: cython.int, has_offsets: cython.bint, is_nullable: cython.bint, fields: list
    ) -> None:
        self.width = width
        self.has_offsets = has_offsets
        self.is_nullable = is_nullable
        self.fields = fields
        self.reset(0)

    def reset(self, capacity: Size) -> None:
        """Begin anew; what was there before belongs to whoever took it."""
        self.length = 0
        self.mark = 0
        self.capacity = 0
        self.valid_room = bytearray()
        self.cell_room = bytearray()
        self.content_room = bytearray()
        self._enlarge(capacity)
        self._enlarge_content(0, capacity * 8 if self.has_offsets else 0)

    def size(self) -> int:
        return self.length

    def buffers(self) -> tuple:
        """Validity, a byte a value; the cells; the content that offsets point into."""
        return self.valid_room, self.cell_room, self.content_room

    @cython.cfunc
    def _enlarge(self, wanted: Size) -> cython.int:
        capacity: Size = max(wanted, 16)
        self.valid_room = _larger(self.valid_room, capacity)
        self.valid = _room(self.valid_room)
        self.cell_room = _larger(self.cell_room, (capacity + self.has_offsets) * self.width)
        self.cells = _room(self.cell_room)
        if cython.compiled:
            self.ints = cython.cast(Ints, self.cells)
            self.longs = cython.cast(Longs, self.cells)
            self.floats = cython.cast(Floats, self.cells)
            self.doubles = cython.cast(Doubles, self.cells)
        elif self.width == 4:
            self.ints = self.cells.cast("i")
            self.floats = self.cells.cast("f")
        elif self.width >= 8:
            self.longs = self.cells.cast("q")
            self.doubles = self.cells.cast("d")
        self.capacity = capacity
        return 0

    @cython.cfunc
    @cython.inline
    @cython.exceptval(-1)
    def begin(self) -> Size:
        """Make room for one more value; where it goes. The buffers may be others after."""
        if self.length == self.capacity:
            self._enlarge(self.capacity * 2)
        return self.length

    @cython.cfunc
    @cython.inline
    @cython.exceptval(check=False)
    def end(self) -> cython.int:
        """The value is written."""
        self.valid[self.length] = 1
        self.length += 1
        return 0

    @cython.cfunc
    @cython.exceptval(-1)
    def append_null(self) -> cython.int:
        """A null; where none may be (in a struct that is null itself), some value."""
        at: Size = self.begin()
        field: Column
        self.valid[at] = not self.is_nullable
        if self.has_offsets:
            self.ints[at + 1] = self.ints[at]
        elif self.width:
            _clear(self.cells, at * self.width, self.width)
        for field in self.fields:
            field.append_null()
        self.length = at + 1
        return 0

    @cython.cfunc
    @cython.inline
    @cython.exceptval(-1)
    def append_bytes(self, data: Address, start: Size, size: Size) -> cython.int:
        at: Size = self.begin()
        used: Size = self.ints[at]
        if self.content_size - used < size:
            self._enlarge_content(used, size)
        _copy(self.content, used, data, start, size)
        self.ints[at + 1] = used + size
        return self.end()

    @cython.cfunc
    @cython.exceptval(-1)
    def _enlarge_content(self, used: Size, size: Size) -> cython.int:
        if used + size > 0x7FFFFFFF:
            raise ValueError("A column has more than 2 GiB: decode fewer payloads at a time.")
        self.content_size = max(used + size, 2 * used, 256)
        self.content_room = _larger(self.content_room, self.content_size)
        self.content = _room(self.content_room)
        return 0

    @cython.cfunc
    @cython.exceptval(-1)
    def append_list(self, item_count: Size) -> cython.int:
        """A list, whose items are all there; `item_count` with those of earlier ones."""
        at: Size = self.begin()
        if item_count > 0x7FFFFFFF:
            raise ValueError("A column has more than 2^31 items: decode fewer payloads at a time.")
        self.ints[at + 1] = item_count
        return self.end()


@cython.final
@cython.cclass
class Cursor:
    """Where a payload is being read."""

    data: Address
    at: Size
    end: Size
    fault: cython.int
    depth: Size  # of records within themselves
    empty: Long  # items so far that took no bytes
    path: list  # the names of the fields that the fault is in, the innermost first

    def __init__(self) -> None:
        self.path = []

    @cython.cfunc
    @cython.inline
    @cython.exceptval(check=False)
    def open(self, data: Address, at: Size, end: Size) -> cython.int:
        """Begin with a payload."""
        self.data = data
        self.at = at
        self.end = end
        self.fault = 0
        self.depth = 0
        self.empty = 0
        return 0

    @cython.cfunc
    @cython.inline
    @cython.exceptval(check=False)
    def varint(self) -> Long:
        """Zigzag, seven bits a byte, lowest first. 0 and a fault where it is cut short."""
        value: Word = 0
        shift: cython.int = 0
        byte: Word
        while self.at < self.end:
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                if shift == 63 and byte > 1:
                    break
                return _signed(value >> 1) ^ -_signed(value & 1)
            shift += 7
            if shift > 63:
                break
        self.fault = OVERLONG if shift >= 63 else ENDS
        return 0

    @cython.cfunc
    @cython.inline
    @cython.exceptval(check=False)
    def take(self, size: Long) -> Size:
        """Step over so many bytes; where they begin."""
        at: Size = self.at
        if size < 0:
            self.fault = NEGATIVE
        elif size > self.end - at:
            self.fault = ENDS
        else:
            self.at = at + size
        return at

    @cython.cfunc
    @cython.exceptval(check=False)
    def block(self, item_bytes: cython.int) -> Long:
        """How many items the next block of an array or a map has; none ends it."""
        count: Long = self.varint()
        if count < -0x7FFFFFFFFFFFFFFF:  # C has no such positive number
            self.fault = NEGATIVE
        elif count < 0:
            self.varint()  # the block's size in bytes, which only those need who skip it
            count = -count
        if item_bytes and count > self.end - self.at:
            self.fault = ENDS
        elif not item_bytes and not self.fault:
            if count > MOST_EMPTY - self.empty:
                self.fault = TOO_MANY
            self.empty += count
        return 0 if self.fault else count


@cython.cclass
class Step:
    """Reads a value and appends it to its column."""

    column: Column

    def __init__(self, column: object = None) -> None:
        """Those that pass over values have none."""
        self.column = column

    @cython.cfunc
    @cython.exceptval(-1)
    def read(self, cursor: Cursor) -> cython.int:
        raise NotImplementedError


@cython.cclass
class Nothing(Step):
    """A null, which takes no bytes."""

    @cython.cfunc
    @cython.exceptval(-1)
    def read(self, cursor: Cursor) -> cython.int:
        return self.column.append_null()


@cython.cclass
class Boolean(Step):
    @cython.cfunc
    @cython.exceptval(-1)
    def read(self, cursor: Cursor) -> cython.int:
        at: Size = cursor.take(1)
        if cursor.fault:
            return cursor.fault
        if cursor.data[at] > 1:
            cursor.fault = NOT_BOOLEAN
            return NOT_BOOLEAN
        place: Size = self.column.begin()
        self.column.cells[place] = cursor.data[at]
        return self.column.end()


@cython.cclass
class Int(Step):
    @cython.cfunc
    @cython.exceptval(-1)
    def read(self, cursor: Cursor) -> cython.int:
        value: Long = cursor.varint()
        if value > 0x7FFFFFFF or value < -0x80000000:
            cursor.fault = UNFIT
        if cursor.fault:
            return cursor.fault
        place: Size = self.column.begin()
        self.column.ints[place] = value
        return self.column.end()


@cython.cclass
class Long64(Step):
    """An int or a long within bounds, in units that are multiples or parts of the column's."""

    least: Long
    most: Long
    times: Long
    parts: Long

    def __init__(self, column: Column, least: Long, most: Long, times: Long, parts: Long) -> None:
        self.column = column
        self.least = least
        self.most = most
        self.times = times
        self.parts = parts

    @cython.cfunc
    @cython.exceptval(-1)
    def read(self, cursor: Cursor) -> cython.int:
        value: Long = cursor.varint()
        if value < self.least or value > self.most:
            cursor.fault = UNFIT
        if cursor.fault:
            return cursor.fault
        if self.parts > 1:
            value = value // self.parts
        place: Size = self.column.begin()
        self.column.longs[place] = value * self.times
        return self.column.end()


@cython.cclass
class IntegerToFloat(Step):
    @cython.cfunc
    @cython.exceptval(-1)
    def read(self, cursor: Cursor) -> cython.int:
        value: Long = cursor.varint()
        if cursor.fault:
            return cursor.fault
        place: Size = self.column.begin()
        if self.column.width == 4:
            self.column.floats[place] = value
        else:
            self.column.doubles[place] = value
        return self.column.end()


@cython.cclass
class FloatToDouble(Step):
    single: Column  # where a float is taken out of its bytes

    def __init__(self, column: Column) -> None:
        self.column = column
        self.single = Column(4, False, False, [])

    @cython.cfunc
    @cython.exceptval(-1)
    def read(self, cursor: Cursor) -> cython.int:
        at: Size = cursor.take(4)
        if cursor.fault:
            return cursor.fault
        _copy(self.single.cells, 0, cursor.data, at, 4)
        place: Size = self.column.begin()
        self.column.doubles[place] = self.single.floats[0]
        return self.column.end()


@cython.cclass
class Floating(Step):
    """A float or a double: Avro's bytes are Arrow's."""

    @cython.cfunc
    @cython.exceptval(-1)
    def read(self, cursor: Cursor) -> cython.int:
        width: cython.int = self.column.width
        at: Size = cursor.take(width)
        if cursor.fault:
            return cursor.fault
        place: Size = self.column.begin()
        _copy(self.column.cells, place * width, cursor.data, at, width)
        return self.column.end()


@cython.cclass
class Bytes(Step):
    is_text: cython.bint

    def __init__(self, column: Column, is_text: cython.bint) -> None:
        self.column = column
        self.is_text = is_text

    @cython.cfunc
    @cython.exceptval(-1)
    def read(self, cursor: Cursor) -> cython.int:
        size: Long = cursor.varint()
        if cursor.fault:
            return cursor.fault
        at: Size = cursor.take(size)
        if cursor.fault:
            return cursor.fault
        if self.is_text and not _is_utf8(cursor.data, at, size):
            cursor.fault = NOT_TEXT
            return NOT_TEXT
        return self.column.append_bytes(cursor.data, at, size)


@cython.cclass
class FixedBytes(Step):
    size: Long

    def __init__(self, column: Column, size: Long) -> None:
        self.column = column
        self.size = size

    @cython.cfunc
    @cython.exceptval(-1)
    def read(self, cursor: Cursor) -> cython.int:
        at: Size = cursor.take(self.size)
        if cursor.fault:
            return cursor.fault
        return self.column.append_bytes(cursor.data, at, self.size)


@cython.cclass
class Uuid(Step):
    """Sixteen bytes to the text that is common for them."""

    text: bytearray
    digits: Octets

    def __init__(self, column: Column) -> None:
        self.column = column
        self.text = bytearray(b"-" * 36)
        self.digits = _room(self.text)

    @cython.cfunc
    @cython.exceptval(-1)
    def read(self, cursor: Cursor) -> cython.int:
        at: Size = cursor.take(16)
        if cursor.fault:
            return cursor.fault
        place: Size = 0
        index: Size
        byte: cython.int
        for index in range(16):
            if index == 4 or index == 6 or index == 8 or index == 10:
                place += 1
            byte = cursor.data[at + index]
            self.digits[place] = _hexadecimal(byte >> 4)
            self.digits[place + 1] = _hexadecimal(byte & 15)
            place += 2
        return self.column.append_bytes(self.digits, 0, 36)


@cython.cclass
class Decimal(Step):
    """Big-endian two's complement, of a given size or with its length before it.

    The column has sixteen bytes a value, little-endian: two longs, the low one first.
    """

    size: Long
    limit_high: Long
    limit_low: Word

    def __init__(self, column: Column, size: Long, limit_high: Long, limit_low: Word) -> None:
        """A negative size is read from the payload. The limit is the largest value."""
        self.column = column
        self.size = size
        self.limit_high = limit_high
        self.limit_low = limit_low

    @cython.cfunc
    @cython.exceptval(-1)
    def read(self, cursor: Cursor) -> cython.int:
        size: Long = self.size
        if size < 0:
            size = cursor.varint()
        if cursor.fault:
            return cursor.fault
        start: Size = cursor.take(size)
        if cursor.fault:
            return cursor.fault
        place: Size = self.column.begin() * 16
        sign: cython.uchar = 0
        if size and cursor.data[start] >= 0x80:
            sign = 0xFF
        while size > 16:  # digits that say no more than the sign does
            if cursor.data[start] != sign:
                cursor.fault = UNFIT
                return UNFIT
            start += 1
            size -= 1
        index: Size
        for index in range(16):
            self.column.cells[place + index] = (
                cursor.data[start + size - 1 - index] if index < size else sign
            )
        if (sign == 0xFF) != (self.column.cells[place + 15] >= 0x80) or self._is_beyond(place // 8):
            cursor.fault = UNFIT
            return UNFIT
        return self.column.end()

    @cython.cfunc
    @cython.exceptval(check=False)
    def _is_beyond(self, place: Size) -> cython.bint:
        high: Long = self.column.longs[place + 1]
        low: Word = self.column.longs[place] & 0xFFFFFFFFFFFFFFFF
        if high < 0:
            high = ~high
            low = ~low & 0xFFFFFFFFFFFFFFFF
            if low == 0xFFFFFFFFFFFFFFFF:
                if high == 0x7FFFFFFFFFFFFFFF:
                    return True  # there is no such positive number
                high += 1
                low = 0
            else:
                low += 1
        return high > self.limit_high or (high == self.limit_high and low > self.limit_low)


@cython.cclass
class Symbol(Step):
    """The name of an enum's symbol."""

    names: bytearray
    letters: Octets
    count: Size
    places: Column  # as offsets, where the names begin and end among the letters

    def __init__(self, column: Column, symbols: list) -> None:
        """In place of a symbol that the reader does not know is None."""
        self.column = column
        self.names = bytearray()
        self.count = len(symbols)
        self.places = Column(4, False, False, [])
        self.places.reset(2 * self.count)
        for index, symbol in enumerate(symbols):
            self.places.ints[2 * index] = -1 if symbol is None else len(self.names)
            self.names += symbol or b""
            self.places.ints[2 * index + 1] = len(self.names)
        self.letters = _room(self.names)

    @cython.cfunc
    @cython.exceptval(-1)
    def read(self, cursor: Cursor) -> cython.int:
        index: Long = cursor.varint()
        if cursor.fault:
            return cursor.fault
        if index < 0 or index >= self.count or self.places.ints[2 * index] < 0:
            cursor.fault = NO_SYMBOL
            return NO_SYMBOL
        start: Size = self.places.ints[2 * index]
        end: Size = self.places.ints[2 * index + 1]
        return self.column.append_bytes(self.letters, start, end - start)


@cython.cclass
class Choice(Step):
    """A union: the number of a member, and a value of that."""

    members: list

    def __init__(self, members: list) -> None:
        self.members = members

    @cython.cfunc
    @cython.exceptval(-1)
    def read(self, cursor: Cursor) -> cython.int:
        index: Long = cursor.varint()
        if index < 0 or index >= len(self.members):
            cursor.fault = NO_MEMBER
        if cursor.fault:
            return cursor.fault
        member: Step = cython.cast(Step, self.members[index])
        return member.read(cursor)


@cython.cclass
class Member(Step):
    """One member of a union, which is a struct of all: the others' fields are null."""

    inner: Step
    others: list

    def __init__(self, column: Column, inner: Step, others: list) -> None:
        self.column = column
        self.inner = inner
        self.others = others

    @cython.cfunc
    @cython.exceptval(-1)
    def read(self, cursor: Cursor) -> cython.int:
        other: Column
        if self.inner.read(cursor):
            return cursor.fault
        for other in self.others:
            other.append_null()
        self.column.begin()
        return self.column.end()


@cython.cclass
class RecordFields(Step):
    """The fields of a record as they were written; there is no column for one that is skipped."""

    steps: list
    names: list

    def __init__(self, column: object, steps: list, names: list) -> None:
        self.column = column
        self.steps = steps
        self.names = names

    @cython.cfunc
    @cython.exceptval(-1)
    def read(self, cursor: Cursor) -> cython.int:
        index: Size
        step: Step
        for index in range(len(self.steps)):
            step = cython.cast(Step, self.steps[index])
            if step.read(cursor):
                cursor.path.append(self.names[index])
                return cursor.fault
        if self.column is None:
            return 0
        self.column.begin()
        return self.column.end()


@cython.cclass
class Items(Step):
    """The blocks of an array or a map; what is skipped has no columns."""

    items: Column
    steps: list
    item_bytes: cython.int

    def __init__(self, column: object, items: object, steps: list, item_bytes: cython.int) -> None:
        """The steps read an item, which takes at least so many bytes."""
        self.column = column
        self.items = items
        self.steps = steps
        self.item_bytes = item_bytes

    @cython.cfunc
    @cython.exceptval(-1)
    def read(self, cursor: Cursor) -> cython.int:
        index: Size
        step: Step
        left: Long = cursor.block(self.item_bytes)
        while left > 0:
            while left > 0:
                for index in range(len(self.steps)):
                    step = cython.cast(Step, self.steps[index])
                    if step.read(cursor):
                        return cursor.fault
                left -= 1
            left = cursor.block(self.item_bytes)
        if cursor.fault:
            return cursor.fault
        if self.column is None:
            return 0
        return self.column.append_list(self.items.length)


@cython.cclass
class Default(Step):
    """A field that was not written: its default, encoded, is read in its place."""

    inner: Step
    encoded: cython.const[cython.uchar][::1]

    def __init__(self, inner: Step, encoded: bytes) -> None:
        self.inner = inner
        self.encoded = encoded

    @cython.cfunc
    @cython.exceptval(-1)
    def read(self, cursor: Cursor) -> cython.int:
        data: Address = cursor.data
        at: Size = cursor.at
        end: Size = cursor.end
        cursor.data = _address(self.encoded)
        cursor.at = 0
        cursor.end = len(self.encoded)
        self.inner.read(cursor)
        cursor.data = data
        cursor.at = at
        cursor.end = end
        return cursor.fault


@cython.cclass
class SkipVarint(Step):
    @cython.cfunc
    @cython.exceptval(-1)
    def read(self, cursor: Cursor) -> cython.int:
        cursor.varint()
        return cursor.fault


@cython.cclass
class SkipBytes(Step):
    @cython.cfunc
    @cython.exceptval(-1)
    def read(self, cursor: Cursor) -> cython.int:
        size: Long = cursor.varint()
        if not cursor.fault:
            cursor.take(size)
        return cursor.fault


@cython.cclass
class SkipFixed(Step):
    size: Long

    def __init__(self, size: Long) -> None:
        self.size = size

    @cython.cfunc
    @cython.exceptval(-1)
    def read(self, cursor: Cursor) -> cython.int:
        cursor.take(self.size)
        return cursor.fault


@cython.cclass
class Again(Step):
    """A record within itself. What is nested deeper than the stack bears is a fault."""

    inner: Step

    def begin_at(self, inner: Step) -> None:
        self.inner = inner

    @cython.cfunc
    @cython.exceptval(-1)
    def read(self, cursor: Cursor) -> cython.int:
        if cursor.depth == DEEPEST:
            cursor.fault = TOO_DEEP
            return TOO_DEEP
        cursor.depth += 1
        if self.inner.read(cursor):
            cursor.path.clear()  # names the field that the whole is in
        cursor.depth -= 1
        return cursor.fault


@cython.cclass
class Refuse(Step):
    """A member of a union that the reader's schema has no place for."""

    @cython.cfunc
    @cython.exceptval(-1)
    def read(self, cursor: Cursor) -> cython.int:
        cursor.fault = NO_PLACE
        return NO_PLACE


@cython.cclass
class Program:
    """Decodes payloads with a tree of steps into the columns they append to."""

    root: Step
    column: Column
    columns: list
    nested: list

    def __init__(self, root: Step, column: Column, columns: list, nested: list) -> None:
        """`column` is the root's. `columns` are as long as it; `nested` are within lists."""
        self.root = root
        self.column = column
        self.columns = columns
        self.nested = nested

    def run(
        self,
        offsets: cython.const[cython.int][::1],
        validity: cython.const[cython.uchar][::1],
        content: cython.const[cython.uchar][::1],
        first: Size,
        count: Size,
        header_bytes: Size,
    ) -> list[tuple[int, int, list[str]]]:
        """Decodes `count` payloads; each begins after a header of so many bytes.

        Returns the rows that are null for a fault, which fault, and in which fields.
        """
        faults: list = []
        cursor: Cursor = Cursor()
        column: Column
        row: Size
        at: Size
        end: Size
        size: Size = len(content)
        has_nulls: cython.bint = len(validity) > 0
        if count and (
            first < 0
            or len(offsets) < first + count + 1
            or (has_nulls and len(validity) * 8 < first + count)
        ):
            raise ValueError("The buffers of the payloads do not fit each other.")
        for column in self.columns:
            column.reset(count)
        for column in self.nested:
            column.reset(count)
        for row in range(count):
            if has_nulls and not (validity[(first + row) >> 3] >> ((first + row) & 7)) & 1:
                self.column.append_null()
                continue
            for column in self.nested:
                column.mark = column.length
            at = offsets[first + row] + header_bytes
            end = offsets[first + row + 1]
            cursor.open(_address(content), at, end)
            if at < header_bytes or end > size or at > end:
                cursor.fault = ENDS
            else:
                self.root.read(cursor)
            if cursor.fault:
                faults.append((row, cursor.fault, cursor.path))
                cursor.path = []
                self._cut_back(row)
                self.column.append_null()
        return faults

    @cython.cfunc
    @cython.exceptval(-1)
    def _cut_back(self, row: Size) -> cython.int:
        column: Column
        for column in self.columns:
            column.length = row
        for column in self.nested:
            column.length = column.mark
        return 0


def _larger(room: bytearray, size: Size) -> bytearray:
    larger = bytearray(size)
    larger[: len(room)] = room
    return larger


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _room(room: bytearray) -> Octets:
    """In C its address, which holds while the bytearray keeps its size."""
    return cython.cast(Octets, PyByteArray_AS_STRING(room)) if cython.compiled else memoryview(room)


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _address(buffer: cython.const[cython.uchar][::1]) -> Address:
    return cython.address(buffer[0]) if cython.compiled else buffer


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _copy(target: Octets, place: Size, data: Address, start: Size, size: Size) -> cython.int:
    if not cython.compiled:
        target[place : place + size] = data[start : start + size]
    elif size:
        memcpy(target + place, data + start, size)
    return 0


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _clear(target: Octets, place: Size, size: Size) -> cython.int:
    if cython.compiled:
        memset(target + place, 0, size)
    else:
        target[place : place + size] = bytes(size)
    return 0


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _signed(value: Word) -> Long:
    return value


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _hexadecimal(digit: cython.int) -> cython.uchar:
    return digit + (48 if digit < 10 else 87)


@cython.cfunc
@cython.exceptval(check=False)
def _is_utf8(data: Address, start: Size, size: Size) -> cython.bint:
    at: Size = start
    end: Size = start + size
    more: cython.int
    lead: cython.uchar
    least: cython.uchar
    most: cython.uchar
    eight: Word = 0
    while at < end:
        if cython.compiled:
            while end - at >= 8:
                memcpy(cython.address(eight), data + at, 8)
                if eight & 0x8080808080808080:
                    break
                at += 8
            if at == end:
                break
        lead = data[at]
        at += 1
        if lead < 0x80:
            continue
        least = 0x80
        most = 0xBF
        if lead < 0xC2 or lead > 0xF4:
            return False
        if lead < 0xE0:
            more = 1
        elif lead < 0xF0:
            more = 2
            if lead == 0xE0:
                least = 0xA0
            elif lead == 0xED:
                most = 0x9F
        else:
            more = 3
            if lead == 0xF0:
                least = 0x90
            elif lead == 0xF4:
                most = 0x8F
        if end - at < more or data[at] < least or data[at] > most:
            return False
        at += 1
        while more > 1:
            if data[at] < 0x80 or data[at] > 0xBF:
                return False
            at += 1
            more -= 1
    return True
