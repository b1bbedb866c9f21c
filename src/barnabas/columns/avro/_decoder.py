# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
"""Decodes Avro payloads into Arrow buffers: compiled with C types, or run as Python.

A schema becomes a tree of readers. Each reads one value at the cursor and appends it to a column;
no object is created for a record. Bytes come from the network: every length is checked against the
end of the payload before anything is read.

A reader returns 0 or an error code. After an error the rest of the payload is not read, and the
columns are truncated to their lengths before it.

It is one file because C inlines only within a file: with the columns and the cursor in another
file, an eighth of the speed is lost.
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

TRUNCATED = cython.declare(cython.Py_ssize_t, 1)
OVERLONG = cython.declare(cython.Py_ssize_t, 2)
OUT_OF_RANGE = cython.declare(cython.Py_ssize_t, 3)
NOT_TEXT = cython.declare(cython.Py_ssize_t, 4)
NO_BRANCH = cython.declare(cython.Py_ssize_t, 5)
NO_SYMBOL = cython.declare(cython.Py_ssize_t, 6)
NEGATIVE = cython.declare(cython.Py_ssize_t, 7)
NOT_BOOLEAN = cython.declare(cython.Py_ssize_t, 8)
TYPE_MISMATCH = cython.declare(cython.Py_ssize_t, 9)
TOO_MANY = cython.declare(cython.Py_ssize_t, 10)
TOO_DEEP = cython.declare(cython.Py_ssize_t, 11)

ERROR_MESSAGES = [
    "",
    "the payload ends within it",
    "a number is longer than 64 bits",
    "a number does not fit its type",
    "text is not UTF-8",
    "a union has no such member",
    "an enum has no such symbol",
    "a length is negative",
    "a boolean is neither 0 nor 1",
    "it was written with a type that the reader's schema cannot represent",
    "its arrays have too many empty items",
    "a record contains itself too many times",
]
"""Descriptions, by error code."""

MAX_EMPTY_ITEMS = cython.declare(cython.Py_ssize_t, 1024)
"""Maximum items of a payload that take no bytes, since its size does not limit them."""
MAX_DEPTH = cython.declare(cython.Py_ssize_t, 1000 if COMPILED else 100)
"""Maximum depth of a record within itself, which any caller's stack allows."""


@cython.final
@cython.cclass
class AvroColumnBuffer:
    """The growing buffers of an Arrow column.

    Cells have one width: values, or offsets into the content or into the items of a list. A
    boolean takes a byte here, as does the validity of a value, until the column is complete.
    """

    width: cython.int
    has_offsets: cython.bint
    is_nullable: cython.bint
    fields: list  # columns of a struct, with the same length
    length: Size
    capacity: Size
    mark: Size
    validity_buffer: bytearray
    valid: Octets
    cell_buffer: bytearray
    cells: Octets
    ints: Ints
    longs: Longs
    floats: Floats
    doubles: Doubles
    content_buffer: bytearray
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
        """Start with new buffers; the caller of `buffers` owns the old ones."""
        self.length = 0
        self.mark = 0
        self.capacity = 0
        self.validity_buffer = bytearray()
        self.cell_buffer = bytearray()
        self.content_buffer = bytearray()
        self._enlarge(capacity)
        self._enlarge_content(0, capacity * 8 if self.has_offsets else 0)

    def size(self) -> int:
        return self.length

    def buffers(self) -> tuple:
        """Returns validity (a byte a value), cells, and the content that offsets refer to."""
        return self.validity_buffer, self.cell_buffer, self.content_buffer

    @cython.cfunc
    def _enlarge(self, needed: Size) -> cython.int:
        capacity: Size = max(needed, 16)
        self.validity_buffer = _enlarged(self.validity_buffer, capacity)
        self.valid = _pointer(self.validity_buffer)
        self.cell_buffer = _enlarged(self.cell_buffer, (capacity + self.has_offsets) * self.width)
        self.cells = _pointer(self.cell_buffer)
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
        """Reserve space for a value and return its index. The buffers may have moved."""
        if self.length == self.capacity:
            self._enlarge(self.capacity * 2)
        return self.length

    @cython.cfunc
    @cython.inline
    @cython.exceptval(check=False)
    def end(self) -> cython.int:
        """The value of `begin` is written."""
        self.valid[self.length] = 1
        self.length += 1
        return 0

    @cython.cfunc
    @cython.exceptval(-1)
    def append_null(self) -> cython.int:
        """Append a null, or any value if the column has no nulls (in a struct that is null)."""
        at: Size = self.begin()
        field: AvroColumnBuffer
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
        self.content_buffer = _enlarged(self.content_buffer, self.content_size)
        self.content = _pointer(self.content_buffer)
        return 0

    @cython.cfunc
    @cython.exceptval(-1)
    def append_list(self, item_count: Size) -> cython.int:
        """Append a list after its items; `item_count` includes the items of earlier lists."""
        at: Size = self.begin()
        if item_count > 0x7FFFFFFF:
            raise ValueError("A column has more than 2^31 items: decode fewer payloads at a time.")
        self.ints[at + 1] = item_count
        return self.end()


@cython.final
@cython.cclass
class AvroCursor:
    """The position in a payload."""

    data: Address
    at: Size
    end: Size
    error: cython.int
    depth: Size  # of records within themselves
    empty: Long  # items so far that took no bytes
    path: list  # the names of the fields around an error, the innermost first

    def __init__(self) -> None:
        self.path = []

    @cython.cfunc
    @cython.inline
    @cython.exceptval(check=False)
    def open(self, data: Address, at: Size, end: Size) -> cython.int:
        """Start a payload."""
        self.data = data
        self.at = at
        self.end = end
        self.error = 0
        self.depth = 0
        self.empty = 0
        return 0

    @cython.cfunc
    @cython.inline
    @cython.exceptval(check=False)
    def varint(self) -> Long:
        """Reads a zigzag number, seven bits a byte, lowest first. Returns 0 after an error."""
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
        self.error = OVERLONG if shift >= 63 else TRUNCATED
        return 0

    @cython.cfunc
    @cython.inline
    @cython.exceptval(check=False)
    def take(self, size: Long) -> Size:
        """Skips `size` bytes and returns where they start."""
        at: Size = self.at
        if size < 0:
            self.error = NEGATIVE
        elif size > self.end - at:
            self.error = TRUNCATED
        else:
            self.at = at + size
        return at

    @cython.cfunc
    @cython.exceptval(check=False)
    def block(self, item_bytes: cython.int) -> Long:
        """Returns the number of items of the next block of an array or map; 0 is the end."""
        count: Long = self.varint()
        if count < -0x7FFFFFFFFFFFFFFF:  # C has no such positive number
            self.error = NEGATIVE
        elif count < 0:
            self.varint()  # the block's size in bytes, which is only needed to skip it
            count = -count
        if item_bytes and count > self.end - self.at:
            self.error = TRUNCATED
        elif not item_bytes and not self.error:
            if count > MAX_EMPTY_ITEMS - self.empty:
                self.error = TOO_MANY
            self.empty += count
        return 0 if self.error else count


@cython.cclass
class AvroReader:
    """Reads a value and appends it to its column."""

    column: AvroColumnBuffer

    def __init__(self, column: object = None) -> None:
        """Readers that skip values have no column."""
        self.column = column

    @cython.cfunc
    @cython.exceptval(-1)
    def read(self, cursor: AvroCursor) -> cython.int:
        raise NotImplementedError


@cython.cclass
class AvroNullReader(AvroReader):
    """A null, which takes no bytes."""

    @cython.cfunc
    @cython.exceptval(-1)
    def read(self, cursor: AvroCursor) -> cython.int:
        return self.column.append_null()


@cython.cclass
class AvroBooleanReader(AvroReader):
    @cython.cfunc
    @cython.exceptval(-1)
    def read(self, cursor: AvroCursor) -> cython.int:
        at: Size = cursor.take(1)
        if cursor.error:
            return cursor.error
        if cursor.data[at] > 1:
            cursor.error = NOT_BOOLEAN
            return NOT_BOOLEAN
        index: Size = self.column.begin()
        self.column.cells[index] = cursor.data[at]
        return self.column.end()


@cython.cclass
class AvroIntReader(AvroReader):
    @cython.cfunc
    @cython.exceptval(-1)
    def read(self, cursor: AvroCursor) -> cython.int:
        value: Long = cursor.varint()
        if value > 0x7FFFFFFF or value < -0x80000000:
            cursor.error = OUT_OF_RANGE
        if cursor.error:
            return cursor.error
        index: Size = self.column.begin()
        self.column.ints[index] = value
        return self.column.end()


@cython.cclass
class AvroLongReader(AvroReader):
    """An int or long within bounds, in a unit that is a multiple or fraction of the column's."""

    minimum: Long
    maximum: Long
    multiplier: Long
    divisor: Long

    def __init__(
        self,
        column: AvroColumnBuffer,
        minimum: Long,
        maximum: Long,
        multiplier: Long,
        divisor: Long,
    ) -> None:
        self.column = column
        self.minimum = minimum
        self.maximum = maximum
        self.multiplier = multiplier
        self.divisor = divisor

    @cython.cfunc
    @cython.exceptval(-1)
    def read(self, cursor: AvroCursor) -> cython.int:
        value: Long = cursor.varint()
        if value < self.minimum or value > self.maximum:
            cursor.error = OUT_OF_RANGE
        if cursor.error:
            return cursor.error
        if self.divisor > 1:
            value = value // self.divisor
        index: Size = self.column.begin()
        self.column.longs[index] = value * self.multiplier
        return self.column.end()


@cython.cclass
class AvroIntToFloatReader(AvroReader):
    @cython.cfunc
    @cython.exceptval(-1)
    def read(self, cursor: AvroCursor) -> cython.int:
        value: Long = cursor.varint()
        if cursor.error:
            return cursor.error
        index: Size = self.column.begin()
        if self.column.width == 4:
            self.column.floats[index] = value
        else:
            self.column.doubles[index] = value
        return self.column.end()


@cython.cclass
class AvroFloatToDoubleReader(AvroReader):
    single: AvroColumnBuffer  # scratch space to convert bytes to a float

    def __init__(self, column: AvroColumnBuffer) -> None:
        self.column = column
        self.single = AvroColumnBuffer(4, False, False, [])

    @cython.cfunc
    @cython.exceptval(-1)
    def read(self, cursor: AvroCursor) -> cython.int:
        at: Size = cursor.take(4)
        if cursor.error:
            return cursor.error
        _copy(self.single.cells, 0, cursor.data, at, 4)
        index: Size = self.column.begin()
        self.column.doubles[index] = self.single.floats[0]
        return self.column.end()


@cython.cclass
class AvroFloatReader(AvroReader):
    """A float or a double: Avro and Arrow have the same bytes."""

    @cython.cfunc
    @cython.exceptval(-1)
    def read(self, cursor: AvroCursor) -> cython.int:
        width: cython.int = self.column.width
        at: Size = cursor.take(width)
        if cursor.error:
            return cursor.error
        index: Size = self.column.begin()
        _copy(self.column.cells, index * width, cursor.data, at, width)
        return self.column.end()


@cython.cclass
class AvroBytesReader(AvroReader):
    is_text: cython.bint

    def __init__(self, column: AvroColumnBuffer, is_text: cython.bint) -> None:
        self.column = column
        self.is_text = is_text

    @cython.cfunc
    @cython.exceptval(-1)
    def read(self, cursor: AvroCursor) -> cython.int:
        size: Long = cursor.varint()
        if cursor.error:
            return cursor.error
        at: Size = cursor.take(size)
        if cursor.error:
            return cursor.error
        if self.is_text and not _is_utf8(cursor.data, at, size):
            cursor.error = NOT_TEXT
            return NOT_TEXT
        return self.column.append_bytes(cursor.data, at, size)


@cython.cclass
class AvroFixedReader(AvroReader):
    size: Long

    def __init__(self, column: AvroColumnBuffer, size: Long) -> None:
        self.column = column
        self.size = size

    @cython.cfunc
    @cython.exceptval(-1)
    def read(self, cursor: AvroCursor) -> cython.int:
        at: Size = cursor.take(self.size)
        if cursor.error:
            return cursor.error
        return self.column.append_bytes(cursor.data, at, self.size)


@cython.cclass
class AvroUuidReader(AvroReader):
    """Sixteen bytes, as the usual text of a UUID."""

    text: bytearray
    digits: Octets

    def __init__(self, column: AvroColumnBuffer) -> None:
        self.column = column
        self.text = bytearray(b"-" * 36)
        self.digits = _pointer(self.text)

    @cython.cfunc
    @cython.exceptval(-1)
    def read(self, cursor: AvroCursor) -> cython.int:
        at: Size = cursor.take(16)
        if cursor.error:
            return cursor.error
        position: Size = 0
        index: Size
        byte: cython.int
        for index in range(16):
            if index == 4 or index == 6 or index == 8 or index == 10:
                position += 1
            byte = cursor.data[at + index]
            self.digits[position] = _hexadecimal(byte >> 4)
            self.digits[position + 1] = _hexadecimal(byte & 15)
            position += 2
        return self.column.append_bytes(self.digits, 0, 36)


@cython.cclass
class AvroDecimalReader(AvroReader):
    """Big-endian two's complement, of a fixed size or after its length.

    The column has sixteen bytes a value, little-endian: two longs, the low one first.
    """

    size: Long
    limit_high: Long
    limit_low: Word

    def __init__(
        self, column: AvroColumnBuffer, size: Long, limit_high: Long, limit_low: Word
    ) -> None:
        """A negative size is read from the payload. The limit is the largest value."""
        self.column = column
        self.size = size
        self.limit_high = limit_high
        self.limit_low = limit_low

    @cython.cfunc
    @cython.exceptval(-1)
    def read(self, cursor: AvroCursor) -> cython.int:
        size: Long = self.size
        if size < 0:
            size = cursor.varint()
        if cursor.error:
            return cursor.error
        start: Size = cursor.take(size)
        if cursor.error:
            return cursor.error
        position: Size = self.column.begin() * 16
        sign: cython.uchar = 0
        if size and cursor.data[start] >= 0x80:
            sign = 0xFF
        while size > 16:  # leading bytes that only repeat the sign
            if cursor.data[start] != sign:
                cursor.error = OUT_OF_RANGE
                return OUT_OF_RANGE
            start += 1
            size -= 1
        index: Size
        for index in range(16):
            self.column.cells[position + index] = (
                cursor.data[start + size - 1 - index] if index < size else sign
            )
        if (sign == 0xFF) != (self.column.cells[position + 15] >= 0x80) or self._is_out_of_range(
            position // 8
        ):
            cursor.error = OUT_OF_RANGE
            return OUT_OF_RANGE
        return self.column.end()

    @cython.cfunc
    @cython.exceptval(check=False)
    def _is_out_of_range(self, index: Size) -> cython.bint:
        high: Long = self.column.longs[index + 1]
        low: Word = self.column.longs[index] & 0xFFFFFFFFFFFFFFFF
        if high < 0:
            high = ~high
            low = ~low & 0xFFFFFFFFFFFFFFFF
            if low == 0xFFFFFFFFFFFFFFFF:
                if high == 0x7FFFFFFFFFFFFFFF:
                    return True  # it has no positive counterpart
                high += 1
                low = 0
            else:
                low += 1
        return high > self.limit_high or (high == self.limit_high and low > self.limit_low)


@cython.cclass
class AvroEnumReader(AvroReader):
    """The name of an enum's symbol."""

    names: bytearray
    letters: Octets
    count: Size
    bounds: AvroColumnBuffer  # the start and end of each name in the letters

    def __init__(self, column: AvroColumnBuffer, symbols: list) -> None:
        """A symbol that the reader's schema does not have is None."""
        self.column = column
        self.names = bytearray()
        self.count = len(symbols)
        self.bounds = AvroColumnBuffer(4, False, False, [])
        self.bounds.reset(2 * self.count)
        for index, symbol in enumerate(symbols):
            self.bounds.ints[2 * index] = -1 if symbol is None else len(self.names)
            self.names += symbol or b""
            self.bounds.ints[2 * index + 1] = len(self.names)
        self.letters = _pointer(self.names)

    @cython.cfunc
    @cython.exceptval(-1)
    def read(self, cursor: AvroCursor) -> cython.int:
        index: Long = cursor.varint()
        if cursor.error:
            return cursor.error
        if index < 0 or index >= self.count or self.bounds.ints[2 * index] < 0:
            cursor.error = NO_SYMBOL
            return NO_SYMBOL
        start: Size = self.bounds.ints[2 * index]
        end: Size = self.bounds.ints[2 * index + 1]
        return self.column.append_bytes(self.letters, start, end - start)


@cython.cclass
class AvroUnionReader(AvroReader):
    """A union: the number of a branch, and a value of that branch."""

    branches: list

    def __init__(self, branches: list) -> None:
        self.branches = branches

    @cython.cfunc
    @cython.exceptval(-1)
    def read(self, cursor: AvroCursor) -> cython.int:
        index: Long = cursor.varint()
        if index < 0 or index >= len(self.branches):
            cursor.error = NO_BRANCH
        if cursor.error:
            return cursor.error
        branch: AvroReader = cython.cast(AvroReader, self.branches[index])
        return branch.read(cursor)


@cython.cclass
class AvroBranchReader(AvroReader):
    """One branch of a union, which is a struct of all branches: the other fields are null."""

    inner: AvroReader
    others: list

    def __init__(self, column: AvroColumnBuffer, inner: AvroReader, others: list) -> None:
        self.column = column
        self.inner = inner
        self.others = others

    @cython.cfunc
    @cython.exceptval(-1)
    def read(self, cursor: AvroCursor) -> cython.int:
        other: AvroColumnBuffer
        if self.inner.read(cursor):
            return cursor.error
        for other in self.others:
            other.append_null()
        self.column.begin()
        return self.column.end()


@cython.cclass
class AvroRecordReader(AvroReader):
    """The fields of a record in the order they were written; a skipped record has no column."""

    readers: list
    names: list

    def __init__(self, column: object, readers: list, names: list) -> None:
        self.column = column
        self.readers = readers
        self.names = names

    @cython.cfunc
    @cython.exceptval(-1)
    def read(self, cursor: AvroCursor) -> cython.int:
        index: Size
        reader: AvroReader
        for index in range(len(self.readers)):
            reader = cython.cast(AvroReader, self.readers[index])
            if reader.read(cursor):
                cursor.path.append(self.names[index])
                return cursor.error
        if self.column is None:
            return 0
        self.column.begin()
        return self.column.end()


@cython.cclass
class AvroArrayReader(AvroReader):
    """The blocks of an array or a map; a skipped one has no columns."""

    items: AvroColumnBuffer
    readers: list
    item_bytes: cython.int

    def __init__(
        self, column: object, items: object, readers: list, item_bytes: cython.int
    ) -> None:
        """The readers read one item, which takes at least `item_bytes`."""
        self.column = column
        self.items = items
        self.readers = readers
        self.item_bytes = item_bytes

    @cython.cfunc
    @cython.exceptval(-1)
    def read(self, cursor: AvroCursor) -> cython.int:
        index: Size
        reader: AvroReader
        left: Long = cursor.block(self.item_bytes)
        while left > 0:
            while left > 0:
                for index in range(len(self.readers)):
                    reader = cython.cast(AvroReader, self.readers[index])
                    if reader.read(cursor):
                        return cursor.error
                left -= 1
            left = cursor.block(self.item_bytes)
        if cursor.error:
            return cursor.error
        if self.column is None:
            return 0
        return self.column.append_list(self.items.length)


@cython.cclass
class AvroDefaultReader(AvroReader):
    """A field that was not written: its encoded default is read instead."""

    inner: AvroReader
    encoded: cython.const[cython.uchar][::1]

    def __init__(self, inner: AvroReader, encoded: bytes) -> None:
        self.inner = inner
        self.encoded = encoded

    @cython.cfunc
    @cython.exceptval(-1)
    def read(self, cursor: AvroCursor) -> cython.int:
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
        return cursor.error


@cython.cclass
class AvroVarintSkipper(AvroReader):
    @cython.cfunc
    @cython.exceptval(-1)
    def read(self, cursor: AvroCursor) -> cython.int:
        cursor.varint()
        return cursor.error


@cython.cclass
class AvroBytesSkipper(AvroReader):
    @cython.cfunc
    @cython.exceptval(-1)
    def read(self, cursor: AvroCursor) -> cython.int:
        size: Long = cursor.varint()
        if not cursor.error:
            cursor.take(size)
        return cursor.error


@cython.cclass
class AvroFixedSkipper(AvroReader):
    size: Long

    def __init__(self, size: Long) -> None:
        self.size = size

    @cython.cfunc
    @cython.exceptval(-1)
    def read(self, cursor: AvroCursor) -> cython.int:
        cursor.take(self.size)
        return cursor.error


@cython.cclass
class AvroRecursiveReader(AvroReader):
    """A record within itself. Nesting beyond MAX_DEPTH is an error."""

    inner: AvroReader

    def set_inner(self, inner: AvroReader) -> None:
        self.inner = inner

    @cython.cfunc
    @cython.exceptval(-1)
    def read(self, cursor: AvroCursor) -> cython.int:
        if cursor.depth == MAX_DEPTH:
            cursor.error = TOO_DEEP
            return TOO_DEEP
        cursor.depth += 1
        if self.inner.read(cursor):
            cursor.path.clear()  # the error names the outermost field
        cursor.depth -= 1
        return cursor.error


@cython.cclass
class AvroMismatchReader(AvroReader):
    """A branch of a union that the reader's schema cannot represent."""

    @cython.cfunc
    @cython.exceptval(-1)
    def read(self, cursor: AvroCursor) -> cython.int:
        cursor.error = TYPE_MISMATCH
        return TYPE_MISMATCH


@cython.cclass
class AvroProgram:
    """Decodes payloads with a tree of readers into their columns."""

    root: AvroReader
    column: AvroColumnBuffer
    columns: list
    nested: list

    def __init__(
        self, root: AvroReader, column: AvroColumnBuffer, columns: list, nested: list
    ) -> None:
        """`column` is the root's. `columns` have its length; `nested` are within lists."""
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
        """Decodes `count` payloads, each after `header_bytes`.

        Returns the rows that are null because of an error, the error code, and the field path.
        """
        errors: list = []
        cursor: AvroCursor = AvroCursor()
        column: AvroColumnBuffer
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
                cursor.error = TRUNCATED
            else:
                self.root.read(cursor)
            if cursor.error:
                errors.append((row, cursor.error, cursor.path))
                cursor.path = []
                self._truncate(row)
                self.column.append_null()
        return errors

    @cython.cfunc
    @cython.exceptval(-1)
    def _truncate(self, row: Size) -> cython.int:
        column: AvroColumnBuffer
        for column in self.columns:
            column.length = row
        for column in self.nested:
            column.length = column.mark
        return 0


def _enlarged(room: bytearray, size: Size) -> bytearray:
    larger = bytearray(size)
    larger[: len(room)] = room
    return larger


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _pointer(room: bytearray) -> Octets:
    """In C a pointer to the bytes, which is valid while the bytearray keeps its size."""
    return cython.cast(Octets, PyByteArray_AS_STRING(room)) if cython.compiled else memoryview(room)


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _address(buffer: cython.const[cython.uchar][::1]) -> Address:
    return cython.address(buffer[0]) if cython.compiled else buffer


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _copy(target: Octets, index: Size, data: Address, start: Size, size: Size) -> cython.int:
    if not cython.compiled:
        target[index : index + size] = data[start : start + size]
    elif size:
        memcpy(target + index, data + start, size)
    return 0


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _clear(target: Octets, index: Size, size: Size) -> cython.int:
    if cython.compiled:
        memset(target + index, 0, size)
    else:
        target[index : index + size] = bytes(size)
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
    minimum: cython.uchar
    maximum: cython.uchar
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
        minimum = 0x80
        maximum = 0xBF
        if lead < 0xC2 or lead > 0xF4:
            return False
        if lead < 0xE0:
            more = 1
        elif lead < 0xF0:
            more = 2
            if lead == 0xE0:
                minimum = 0xA0
            elif lead == 0xED:
                maximum = 0x9F
        else:
            more = 3
            if lead == 0xF0:
                minimum = 0x90
            elif lead == 0xF4:
                maximum = 0x8F
        if end - at < more or data[at] < minimum or data[at] > maximum:
            return False
        at += 1
        while more > 1:
            if data[at] < 0x80 or data[at] > 0xBF:
                return False
            at += 1
            more -= 1
    return True
