# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
"""Reads JSON documents into Arrow buffers: compiled with C types, or run as Python.

A column is either built from a schema, or inferred: then it takes the type of the first value that
is not null, and objects get a field for each key that occurs. No object is created for a row.

A read returns 0 or an error code. After an error the columns are truncated to the rows before it.
The text must be UTF-8, which the caller checks for all rows at once.

It is one file because C inlines only within a file.
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
    from cython.cimports.cpython.bytes import PyBytes_AS_STRING, PyBytes_FromStringAndSize
    from cython.cimports.libc.string import memcmp, memcpy, memset

    Address = cython.typedef(cython.pointer[cython.const[cython.uchar]])
    Characters = cython.typedef(cython.pointer[cython.const[cython.char]])
    Octets = cython.typedef(cython.pointer[cython.uchar])
    Shorts = cython.typedef(cython.pointer[cython.short])
    Ints = cython.typedef(cython.pointer[cython.int])
    Longs = cython.typedef(cython.pointer[cython.longlong])
    Floats = cython.typedef(cython.pointer[cython.float])
    Doubles = cython.typedef(cython.pointer[cython.double])
    Size = cython.typedef(cython.Py_ssize_t)
    Long = cython.typedef(cython.longlong)
    Word = cython.typedef(cython.ulonglong)

COMPILED: bool = cython.compiled

UNKNOWN = cython.declare(cython.Py_ssize_t, 0)
BOOLEAN = cython.declare(cython.Py_ssize_t, 1)
INTEGER = cython.declare(cython.Py_ssize_t, 2)
FLOAT32 = cython.declare(cython.Py_ssize_t, 3)
FLOAT64 = cython.declare(cython.Py_ssize_t, 4)
STRING = cython.declare(cython.Py_ssize_t, 5)
BYTES = cython.declare(cython.Py_ssize_t, 6)
DECIMAL = cython.declare(cython.Py_ssize_t, 7)
LIST = cython.declare(cython.Py_ssize_t, 8)
MAP = cython.declare(cython.Py_ssize_t, 9)
PAIRS = cython.declare(cython.Py_ssize_t, 10)
STRUCT = cython.declare(cython.Py_ssize_t, 11)
RAW = cython.declare(cython.Py_ssize_t, 12)

KINDS = {
    "unknown": 0,
    "boolean": 1,
    "integer": 2,
    "float32": 3,
    "float64": 4,
    "string": 5,
    "bytes": 6,
    "decimal": 7,
    "list": 8,
    "map": 9,
    "pairs": 10,
    "struct": 11,
    "raw": 12,
}
"""The kinds of columns: a map is written as an object, pairs as an array of arrays, and a raw
column has the text of any values."""

SYNTAX = cython.declare(cython.Py_ssize_t, 1)
MISSING = cython.declare(cython.Py_ssize_t, 2)
WRONG_TYPE = cython.declare(cython.Py_ssize_t, 3)
OUT_OF_RANGE = cython.declare(cython.Py_ssize_t, 4)
NOT_BASE64 = cython.declare(cython.Py_ssize_t, 5)
NOT_A_PAIR = cython.declare(cython.Py_ssize_t, 6)
WRONG_SCALE = cython.declare(cython.Py_ssize_t, 7)
TOO_DEEP = cython.declare(cython.Py_ssize_t, 8)
CONFLICT = cython.declare(cython.Py_ssize_t, 9)
NOT_AN_ENVELOPE = cython.declare(cython.Py_ssize_t, 10)

ERRORS = {
    "syntax": 1,
    "missing": 2,
    "wrong type": 3,
    "out of range": 4,
    "not base64": 5,
    "not a pair": 6,
    "wrong scale": 7,
    "too deep": 8,
    "conflict": 9,
    "not an envelope": 10,
}

_DECIMAL128_END: object = int("1" + 38 * "0")
_DECIMAL256_END: object = int("1" + 76 * "0")
"""The first numbers with too many digits. A power would be a double in C."""

MAX_DEPTH = cython.declare(cython.Py_ssize_t, 500 if COMPILED else 100)
"""Maximum depth of arrays and objects, which any caller's stack allows."""
MAX_CELLS = cython.declare(cython.Py_ssize_t, 1 << 24)
"""Maximum cells of inferred columns. Documents whose keys are data would otherwise need a column
for each key: they are split into runs."""
MAX_EXACT = cython.declare(cython.longlong, 1 << 53)
"""Integers to here are exact as doubles."""


@cython.final
@cython.cclass
class JsonColumn:
    """The growing buffers of an Arrow column, and those of its fields or items.

    A boolean takes a byte here, as does the validity of a value. The fields of a struct may be
    shorter than the struct: what follows is null.
    """

    kind: cython.int
    width: cython.int
    has_offsets: cython.bint
    is_nullable: cython.bint
    is_inferred: cython.bint
    is_integral: cython.bint
    type_name: str
    scale: Size
    names: list  # of the fields, as bytes
    fields: list
    indexes: dict  # of the fields, by name
    keys: JsonColumn
    items: JsonColumn
    born: Size  # the row of the struct that added this field
    typed_at: Size  # the row that the type was inferred from
    length: Size
    capacity: Size
    validity_buffer: bytearray
    valid: Octets
    cell_buffer: bytearray
    cells: Octets
    shorts: Shorts
    ints: Ints
    longs: Longs
    floats: Floats
    doubles: Doubles
    content_buffer: bytearray
    content_size: Size
    content: Octets

    def __init__(
        self,
        kind: cython.int,
        width: cython.int,
        is_nullable: cython.bint,
        type_name: str,
        names: list,
        fields: list,
        keys: object = None,
        items: object = None,
        is_inferred: cython.bint = False,
        is_integral: cython.bint = False,
        scale: Size = 0,
    ) -> None:
        """`is_integral` rejects fractions, and `scale` is that of a decimal."""
        self.kind = kind
        self.width = width
        self.has_offsets = STRING <= kind <= BYTES or LIST <= kind <= PAIRS or kind == RAW
        self.is_nullable = is_nullable
        self.is_inferred = is_inferred
        self.is_integral = is_integral
        self.type_name = type_name
        self.scale = scale
        self.names = names
        self.fields = fields
        self.indexes = {name: index for index, name in enumerate(names)}
        self.keys = keys
        self.items = items
        self.born = 0
        self.typed_at = 0
        self.reset()

    def reset(self) -> None:
        """Start with new buffers; the caller of `parts` owns the old ones."""
        field: JsonColumn
        self.length = 0
        self.capacity = 0
        self.validity_buffer = bytearray()
        self.cell_buffer = bytearray()
        self.content_buffer = bytearray()
        self.content = _pointer(self.content_buffer)
        self.content_size = 0
        self._enlarge(16)
        for field in self.fields:
            field.reset()
        if self.keys is not None:
            self.keys.reset()
        if self.items is not None:
            self.items.reset()

    def parts(self, length: Size) -> tuple:
        """Returns everything that an array of the length is made of."""
        self.pad(length)
        return (
            self.kind,
            self.length,
            self.validity_buffer,
            self.cell_buffer,
            self.content_buffer,
            self.names,
            self.fields,
            self.keys,
            self.items,
        )

    def item_count(self) -> int:
        """Returns how many items the lists or maps have together."""
        return self.ints[self.length]

    @cython.cfunc
    @cython.exceptval(-1)
    def _enlarge(self, needed: Size) -> cython.int:
        capacity: Size = max(needed, 2 * self.capacity)
        self.validity_buffer = _enlarged(self.validity_buffer, capacity)
        self.valid = _pointer(self.validity_buffer)
        self.capacity = capacity
        return self._enlarge_cells()

    @cython.cfunc
    @cython.exceptval(-1)
    def _enlarge_cells(self) -> cython.int:
        if self.width == 0:
            return 0
        self.cell_buffer = _enlarged(
            self.cell_buffer, (self.capacity + self.has_offsets) * self.width
        )
        self.cells = _pointer(self.cell_buffer)
        if cython.compiled:
            self.shorts = cython.cast(Shorts, self.cells)
            self.ints = cython.cast(Ints, self.cells)
            self.longs = cython.cast(Longs, self.cells)
            self.floats = cython.cast(Floats, self.cells)
            self.doubles = cython.cast(Doubles, self.cells)
        elif self.width == 2:
            self.shorts = self.cells.cast("h")
        elif self.width == 4:
            self.ints = self.cells.cast("i")
            self.floats = self.cells.cast("f")
        elif self.width == 8:
            self.longs = self.cells.cast("q")
            self.doubles = self.cells.cast("d")
        return 0

    @cython.cfunc
    @cython.inline
    @cython.exceptval(-1)
    def begin(self) -> Size:
        """Reserve space for a value and return its index. The buffers may have moved."""
        if self.length == self.capacity:
            self._enlarge(0)
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
    def pad(self, length: Size) -> cython.int:
        """Append nulls up to the length."""
        at: Size = self.length
        index: Size
        if length <= at:
            return 0
        if length > self.capacity:
            self._enlarge(length)
        _clear(self.valid, at, length - at)
        if self.has_offsets:
            for index in range(at, length):
                self.ints[index + 1] = self.ints[at]
        elif self.width:
            _clear(self.cells, at * self.width, (length - at) * self.width)
        self.length = length
        return 0

    @cython.cfunc
    @cython.exceptval(-1)
    def append_integer(self, value: Long) -> cython.int:
        """Returns OUT_OF_RANGE if the value does not fit."""
        at: Size = self.begin()
        if self.width == 8:
            self.longs[at] = value
        elif self.width == 4:
            if value < -0x80000000 or value > 0x7FFFFFFF:
                return OUT_OF_RANGE
            self.ints[at] = value
        elif self.width == 2:
            if value < -0x8000 or value > 0x7FFF:
                return OUT_OF_RANGE
            self.shorts[at] = value
        else:
            if value < -0x80 or value > 0x7F:
                return OUT_OF_RANGE
            self.cells[at] = value & 0xFF
        return self.end()

    @cython.cfunc
    @cython.exceptval(-1)
    def append_real(self, value: cython.double) -> cython.int:
        at: Size = self.begin()
        if self.kind == FLOAT64:
            self.doubles[at] = value
        elif cython.compiled:
            self.floats[at] = value
        else:
            try:
                self.floats[at] = value
            except (OverflowError, ValueError):
                self.floats[at] = float("inf") if value > 0 else float("-inf")
        return self.end()

    @cython.cfunc
    @cython.inline
    @cython.exceptval(-1)
    def append_bytes(self, data: Address, start: Size, size: Size) -> cython.int:
        at: Size = self.begin()
        used: Size = self.ints[at]
        self.reserve(used, size)
        _copy(self.content, used, data, start, size)
        self.ints[at + 1] = used + size
        return self.end()

    @cython.cfunc
    @cython.inline
    @cython.exceptval(-1)
    def reserve(self, used: Size, size: Size) -> cython.int:
        """Make room for the content of a value."""
        if self.content_size - used < size:
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

    @cython.cfunc
    @cython.exceptval(-1)
    def truncate(self, length: Size) -> cython.int:
        """Drop the values from `length` on, and what values that failed have left behind."""
        field: JsonColumn
        if length < self.length:
            self.length = length
        length = self.length
        if self.kind == STRUCT:
            if self.is_inferred:
                while self.fields:
                    field = self.fields[len(self.fields) - 1]
                    if field.born < length:
                        break
                    self.fields.pop()
                    del self.indexes[self.names.pop()]
            for field in self.fields:
                field.truncate(length)
        elif self.kind == LIST:
            self.items.truncate(self.ints[length])
        elif self.kind == MAP or self.kind == PAIRS:
            self.keys.truncate(self.ints[length])
            self.items.truncate(self.ints[length])
        if self.is_inferred and self.kind != UNKNOWN and self.typed_at >= length:
            self.kind = UNKNOWN
            self.width = 0
            self.has_offsets = False
            self.cell_buffer = bytearray()
            self.items = None
            self.names = []
            self.fields = []
            self.indexes = {}
        return 0

    @cython.cfunc
    @cython.exceptval(-1)
    def become(self, kind: cython.int) -> cython.int:
        """Give a type to a column that had only nulls."""
        self.kind = kind
        self.typed_at = self.length
        self.has_offsets = kind in (STRING, LIST)
        self.width = 0
        if kind == BOOLEAN:
            self.width = 1
        elif self.has_offsets:
            self.width = 4
        elif kind != STRUCT:
            self.width = 8
        if kind == LIST:
            self.items = inferred_column()
        self.cell_buffer = bytearray()
        return self._enlarge_cells()

    @cython.cfunc
    @cython.exceptval(-1)
    def become_real(self) -> cython.int:
        """Make integers floating-point numbers; returns CONFLICT if one would be rounded."""
        index: Size
        value: Long
        for index in range(self.length):
            value = self.longs[index]
            if value > MAX_EXACT or value < -MAX_EXACT:
                return CONFLICT
        for index in range(self.length):
            self.doubles[index] = self.longs[index]
        self.kind = FLOAT64
        return 0


def inferred_column() -> JsonColumn:
    """Returns a column that takes the type of its values."""
    return JsonColumn(0, 0, True, "", [], [], None, None, True)


@cython.final
@cython.cclass
class JsonReader:
    """The position in a document, and the last key or number that was read."""

    data: Address
    at: Size
    end: Size
    depth: Size
    path: list  # the names of the fields around an error, the innermost first
    type_name: str  # that an error is about
    found: cython.uchar  # the first byte of a value of another type
    root: JsonColumn
    field_count: Size
    escaped_key: bytes
    key_data: Address
    key_start: Size
    key_size: Size
    string_start: Size
    string_size: Size
    has_escapes: cython.bint
    integer: Long
    real: cython.double
    is_integer: cython.bint
    is_big: cython.bint

    def __init__(self, root: object) -> None:
        self.root = root
        self.path = []
        self.type_name = ""
        self.found = 0
        self.field_count = 0

    def describe(self) -> tuple:
        """Returns the path, the name of the type, and the first byte that were found."""
        path = self.path
        self.path = []
        return path, self.type_name, self.found

    @cython.cfunc
    @cython.inline
    @cython.exceptval(check=False)
    def open(self, data: Address, start: Size, end: Size) -> cython.int:
        self.data = data
        self.at = start
        self.end = end
        self.depth = 0
        if end - start >= 3 and data[start] == 0xEF:  # a byte order mark: the text is UTF-8
            self.at += 3
        return 0

    @cython.cfunc
    @cython.inline
    @cython.exceptval(check=False)
    def peek(self) -> cython.uchar:
        """Skips white space and returns the next byte; 0 at the end."""
        byte: cython.uchar
        while self.at < self.end:
            byte = self.data[self.at]
            if byte > 32 or (byte != 32 and byte != 10 and byte != 13 and byte != 9):
                return byte
            self.at += 1
        return 0

    @cython.cfunc
    @cython.exceptval(check=False)
    def literal(self, text: bytes) -> cython.bint:
        """Skips the text, and returns whether it is there."""
        size: Size = len(text)
        if self.end - self.at < size or not _is_equal(self.data, self.at, text, size):
            return False
        self.at += size
        return True

    @cython.cfunc
    @cython.exceptval(-1)
    def read(self, column: JsonColumn) -> cython.int:
        """Reads a value and appends it to the column."""
        byte: cython.uchar = self.peek()
        kind: cython.int
        if byte == 110:
            if not self.literal(b"null"):
                return SYNTAX
            if not column.is_nullable:
                self.type_name = column.type_name
                return MISSING
            return column.pad(column.length + 1)
        if column.is_inferred:
            if byte == 45 or 48 <= byte <= 57:
                return self._inferred_number(column)
            kind = _kind_of(byte)
            if column.kind == UNKNOWN:
                column.become(kind)
            elif kind != column.kind:
                return SYNTAX if kind == UNKNOWN else CONFLICT
        kind = column.kind
        if kind == STRING:
            if byte != 34:
                return self.mismatch(column, byte)
            return self._string(column)
        if kind == INTEGER:
            return self._integer(column, byte)
        if kind == STRUCT:
            return self._struct(column, byte)
        if kind in (FLOAT64, FLOAT32):
            return self._real(column, byte)
        if kind == BOOLEAN:
            return self._boolean(column, byte)
        if kind == LIST:
            return self._list(column, byte)
        if kind == MAP:
            return self._map(column, byte)
        if kind == PAIRS:
            return self._pairs(column, byte)
        if kind == BYTES:
            return self._bytes(column, byte)
        if kind == DECIMAL:
            return self._decimal(column, byte)
        return self._raw(column)

    @cython.cfunc
    @cython.exceptval(-1)
    def _raw(self, column: JsonColumn) -> cython.int:
        start: Size = self.at
        error: cython.int = self.skip()
        return error if error else column.append_bytes(self.data, start, self.at - start)

    @cython.cfunc
    @cython.exceptval(-1)
    def mismatch(self, column: JsonColumn, byte: cython.uchar) -> cython.int:
        if _kind_of(byte) == UNKNOWN and byte != 45 and not 48 <= byte <= 57:
            return SYNTAX
        self.type_name = column.type_name
        self.found = byte
        return WRONG_TYPE

    @cython.cfunc
    @cython.exceptval(-1)
    def out_of_range(self, column: JsonColumn) -> cython.int:
        self.type_name = column.type_name
        return OUT_OF_RANGE

    # Scalars

    @cython.cfunc
    @cython.exceptval(-1)
    def _boolean(self, column: JsonColumn, byte: cython.uchar) -> cython.int:
        at: Size
        value: cython.uchar = byte == 116
        if byte != 116 and byte != 102:
            return self.mismatch(column, byte)
        if not self.literal(b"true" if value else b"false"):
            return SYNTAX
        at = column.begin()
        column.cells[at] = value
        return column.end()

    @cython.cfunc
    @cython.exceptval(-1)
    def _integer(self, column: JsonColumn, byte: cython.uchar) -> cython.int:
        error: cython.int
        if byte != 45 and not 48 <= byte <= 57:
            return self.mismatch(column, byte)
        error = self.number()
        if error:
            return error
        if not self.is_integer:
            if column.is_integral:
                return self.mismatch(column, byte)
            if not -9.2e18 < self.real < 9.2e18:
                return self.out_of_range(column)
            self.integer = int(self.real)
        elif self.is_big:
            return self.out_of_range(column)
        error = column.append_integer(self.integer)
        return self.out_of_range(column) if error else 0

    @cython.cfunc
    @cython.exceptval(-1)
    def _real(self, column: JsonColumn, byte: cython.uchar) -> cython.int:
        error: cython.int
        if byte == 34:
            return self._named_real(column)
        if byte != 45 and not 48 <= byte <= 57:
            return self.mismatch(column, byte)
        error = self.number()
        return error if error else column.append_real(self.real)

    @cython.cfunc
    @cython.exceptval(-1)
    def _named_real(self, column: JsonColumn) -> cython.int:
        """Reads what Jackson writes for numbers that JSON does not have."""
        if self.literal(b'"NaN"'):
            return column.append_real(float("nan"))
        if self.literal(b'"Infinity"'):
            return column.append_real(float("inf"))
        if self.literal(b'"-Infinity"'):
            return column.append_real(float("-inf"))
        return self.mismatch(column, 34)

    @cython.cfunc
    @cython.exceptval(-1)
    def _inferred_number(self, column: JsonColumn) -> cython.int:
        error: cython.int = self.number()
        if error:
            return error
        if self.is_integer and self.is_big:
            self.type_name = "int64"
            return OUT_OF_RANGE
        if column.kind == UNKNOWN:
            column.become(INTEGER if self.is_integer else FLOAT64)
        if column.kind == INTEGER:
            if self.is_integer:
                return column.append_integer(self.integer)
            error = column.become_real()
            if error:
                return error
        is_rounded: cython.bint = self.is_integer and not -MAX_EXACT <= self.integer <= MAX_EXACT
        if column.kind != FLOAT64 or is_rounded:
            return CONFLICT
        return column.append_real(self.real)

    @cython.cfunc
    @cython.exceptval(-1)
    def number(self) -> cython.int:
        """Reads a number into `integer` and `real`. Zeros may lead it."""
        start: Size = self.at
        at: Size = start
        end: Size = self.end
        data: Address = self.data
        digits: Size = 0
        significant: cython.int = 0
        exponent: cython.int = 0
        written: cython.int = 0
        mantissa: Word = 0
        is_negative: cython.bint = data[at] == 45
        is_exponent_negative: cython.bint = False
        is_rounded: cython.bint = False
        if is_negative:
            at += 1
        while at < end and 48 <= data[at] <= 57:
            if significant < 19:
                mantissa = mantissa * 10 + (data[at] - 48)
                significant += mantissa > 0
            else:
                is_rounded = True
            digits += 1
            at += 1
        if digits == 0:
            return SYNTAX
        self.is_integer = True
        if at < end and data[at] == 46:
            self.is_integer = False
            at += 1
            digits = 0
            while at < end and 48 <= data[at] <= 57:
                if significant < 19:
                    mantissa = mantissa * 10 + (data[at] - 48)
                    significant += mantissa > 0
                    exponent -= 1
                else:
                    is_rounded = True
                digits += 1
                at += 1
            if digits == 0:
                return SYNTAX
        if at < end and (data[at] == 101 or data[at] == 69):
            self.is_integer = False
            at += 1
            if at < end and (data[at] == 43 or data[at] == 45):
                is_exponent_negative = data[at] == 45
                at += 1
            digits = 0
            while at < end and 48 <= data[at] <= 57:
                if written < 100000:
                    written = written * 10 + (data[at] - 48)
                digits += 1
                at += 1
            if digits == 0:
                return SYNTAX
            exponent += -written if is_exponent_negative else written
        self.at = at
        self.is_big = is_rounded or mantissa > 0x7FFFFFFFFFFFFFFF
        if self.is_integer and not self.is_big:
            self.integer = -_signed(mantissa) if is_negative else _signed(mantissa)
            self.real = self.integer
        elif not is_rounded and mantissa <= 0x20000000000000 and -22 <= exponent <= 22:
            self.real = _scaled(mantissa, exponent)
            if is_negative:
                self.real = -self.real
        else:
            self.real = float(_bytes_of(data, start, at - start))
            is_least: cython.bint = is_negative and mantissa == 0x8000000000000000
            if self.is_integer and is_least and not is_rounded:
                self.is_big = False
                self.integer = -_signed(mantissa - 1) - 1
        return 0

    @cython.cfunc
    @cython.exceptval(-1)
    def string(self) -> cython.int:
        """Finds the end of the string at the cursor, without its quotes."""
        at: Size = self.at + 1
        end: Size = self.end
        data: Address = self.data
        byte: cython.uchar
        self.string_start = at
        self.has_escapes = False
        while at < end:
            byte = data[at]
            if byte == 34:
                self.string_size = at - self.string_start
                self.at = at + 1
                return 0
            if byte < 32:
                break
            if byte == 92:
                self.has_escapes = True
                at += 1
            at += 1
        self.at = min(at, end)
        return SYNTAX

    @cython.cfunc
    @cython.exceptval(-1)
    def _string(self, column: JsonColumn) -> cython.int:
        at: Size
        used: Size
        size: Size
        if self.string():
            return SYNTAX
        if not self.has_escapes:
            return column.append_bytes(self.data, self.string_start, self.string_size)
        at = column.begin()
        used = column.ints[at]
        column.reserve(used, self.string_size)
        size = _unescape(self.data, self.string_start, self.string_size, column.content, used)
        if size < 0:
            return SYNTAX
        column.ints[at + 1] = used + size
        return column.end()

    @cython.cfunc
    def text(self) -> bytes:
        """Returns the string that was found; None if its escapes are invalid."""
        content: bytearray
        size: Size
        if not self.has_escapes:
            return _bytes_of(self.data, self.string_start, self.string_size)
        content = bytearray(self.string_size)
        size = _unescape(self.data, self.string_start, self.string_size, _pointer(content), 0)
        return None if size < 0 else bytes(content[:size])

    @cython.cfunc
    @cython.exceptval(-1)
    def _bytes(self, column: JsonColumn, byte: cython.uchar) -> cython.int:
        at: Size
        used: Size
        size: Size
        text: bytes
        if byte != 34:
            return self.mismatch(column, byte)
        if self.string():
            return SYNTAX
        at = column.begin()
        used = column.ints[at]
        column.reserve(used, self.string_size)
        if self.has_escapes:
            text = self.text()
            if text is None:
                return SYNTAX
            size = _decode_base64(_address_of(text), 0, len(text), column.content, used)
        else:
            size = _decode_base64(
                self.data, self.string_start, self.string_size, column.content, used
            )
        if size < 0:
            self.type_name = column.type_name
            return NOT_BASE64
        column.ints[at + 1] = used + size
        return column.end()

    @cython.cfunc
    @cython.exceptval(-1)
    def _decimal(self, column: JsonColumn, byte: cython.uchar) -> cython.int:
        """Reads base64 of the unscaled value, big-endian in two's complement, or a number."""
        at: Size
        start: Size
        size: Size
        index: Size
        sign: cython.uchar
        text: bytes
        content: bytearray
        if byte != 34:
            start = self.at
            if byte != 45 and not 48 <= byte <= 57:
                return self.mismatch(column, byte)
            if self.number():
                return SYNTAX
            return self._written_decimal(column, _bytes_of(self.data, start, self.at - start))
        if self.string():
            return SYNTAX
        text = self.text()
        if text is None:
            return SYNTAX
        content = bytearray(len(text) + 1)
        size = _decode_base64(_address_of(text), 0, len(text), _pointer(content), 0)
        self.type_name = column.type_name
        if size <= 0:
            return NOT_BASE64
        if size >= column.width:
            return self._unscaled(column, int.from_bytes(content[:size], "big", signed=True))
        at = column.begin()
        sign = 0xFF if content[0] & 0x80 else 0
        for index in range(column.width):
            column.cells[at * column.width + index] = (
                content[size - 1 - index] if index < size else sign
            )
        return column.end()

    @cython.cfunc
    @cython.exceptval(-1)
    def _written_decimal(self, column: JsonColumn, text: bytes) -> cython.int:
        import decimal

        self.type_name = column.type_name
        number = decimal.Decimal(text.decode())
        if abs(number.adjusted()) > 200 and number:
            return OUT_OF_RANGE
        scaled = number.scaleb(column.scale, _PRECISE)
        if scaled != scaled.to_integral_value(context=_PRECISE):
            return WRONG_SCALE
        return self._unscaled(column, int(scaled))

    @cython.cfunc
    @cython.exceptval(-1)
    def _unscaled(self, column: JsonColumn, value: object) -> cython.int:
        at: Size
        limit: object = _DECIMAL128_END if column.width == 16 else _DECIMAL256_END
        if abs(value) >= limit:
            return self.out_of_range(column)
        octets: bytes = value.to_bytes(column.width, "little", signed=True)
        at = column.begin()
        _copy(column.cells, at * column.width, _address_of(octets), 0, column.width)
        return column.end()

    # Containers

    @cython.cfunc
    @cython.exceptval(-1)
    def key(self) -> cython.int:
        """Reads a key and its colon."""
        if self.peek() != 34 or self.string():
            return SYNTAX
        if self.has_escapes:
            self.escaped_key = self.text()
            if self.escaped_key is None:
                return SYNTAX
            self.key_data = _address_of(self.escaped_key)
            self.key_start = 0
            self.key_size = len(self.escaped_key)
        else:
            self.key_data = self.data
            self.key_start = self.string_start
            self.key_size = self.string_size
        if self.peek() != 58:
            return SYNTAX
        self.at += 1
        return 0

    @cython.cfunc
    @cython.exceptval(-1)
    def next_item(self, closing: cython.uchar) -> cython.int:
        """Skips a comma or the closing bracket; returns 0 for a comma and -2 for the bracket."""
        byte: cython.uchar = self.peek()
        if byte == 44:
            self.at += 1
            return 0
        if byte == closing:
            self.at += 1
            self.depth -= 1
            return -2
        return SYNTAX

    @cython.cfunc
    @cython.exceptval(-1)
    def _struct(self, column: JsonColumn, byte: cython.uchar) -> cython.int:
        row: Size = column.length
        expected: Size = 0
        count: Size = len(column.fields)
        seen: Size = 0
        index: Size
        error: cython.int = 0
        field: JsonColumn
        if byte != 123:
            return self.mismatch(column, byte)
        if self.depth == MAX_DEPTH:
            return TOO_DEEP
        self.depth += 1
        self.at += 1
        if self.peek() == 125:
            self.at += 1
            self.depth -= 1
            error = -2
        while error == 0:
            error = self.key()
            if error:
                return error
            index = self._field_index(column, expected)
            if index == -2:
                error = self.skip()
            else:
                if index == -3:
                    return CONFLICT
                expected = index + 1
                field = cython.cast(JsonColumn, column.fields[index])
                if field.length > row:  # the last of several values is valid
                    field.truncate(row)
                else:
                    seen += 1
                    if field.length < row:
                        field.pad(row)
                error = self.read(field)
                if error and not column.is_inferred:
                    self.path.append(column.names[index])
            if error:
                return error
            error = self.next_item(125)
        if error != -2:
            return error
        if seen < count and not column.is_inferred:
            error = self._require_missing(column, row)
            if error:
                return error
        column.begin()
        return column.end()

    @cython.cfunc
    @cython.exceptval(-1)
    def _require_missing(self, column: JsonColumn, row: Size) -> cython.int:
        """Returns an error if a field that has no value requires one."""
        index: Size
        field: JsonColumn
        for index in range(len(column.fields)):
            field = cython.cast(JsonColumn, column.fields[index])
            if field.length <= row and not field.is_nullable:
                self.type_name = field.type_name
                self.path.append(column.names[index])
                return MISSING
        return 0

    @cython.cfunc
    @cython.exceptval(-1)
    def _field_index(self, column: JsonColumn, expected: Size) -> Size:
        """Returns the field of the key, -2 to skip it, or -3 if it would be one too many."""
        name: bytes
        if expected < len(column.names):
            name = cython.cast(bytes, column.names[expected])
            if len(name) == self.key_size and _is_equal(
                self.key_data, self.key_start, name, self.key_size
            ):
                return expected
        name = _bytes_of(self.key_data, self.key_start, self.key_size)
        found = column.indexes.get(name)
        if found is not None:
            return found
        if not column.is_inferred:
            return -2
        return self._new_field(column, name)

    @cython.cfunc
    @cython.exceptval(-1)
    def _new_field(self, column: JsonColumn, name: bytes) -> Size:
        field: JsonColumn
        if self.root.length and self.field_count * (self.root.length + 1) > MAX_CELLS:
            return -3
        self.field_count += 1
        field = inferred_column()
        field.born = column.length
        column.indexes[name] = len(column.fields)
        column.names.append(name)
        column.fields.append(field)
        return len(column.fields) - 1

    @cython.cfunc
    @cython.exceptval(-1)
    def _list(self, column: JsonColumn, byte: cython.uchar) -> cython.int:
        error: cython.int = 0
        items: JsonColumn = column.items
        if byte != 91:
            return self.mismatch(column, byte)
        if self.depth == MAX_DEPTH:
            return TOO_DEEP
        self.depth += 1
        self.at += 1
        if self.peek() == 93:
            self.at += 1
            self.depth -= 1
            error = -2
        while error == 0:
            error = self.read(items)
            if error:
                return error
            error = self.next_item(93)
        return column.append_list(items.length) if error == -2 else error

    @cython.cfunc
    @cython.exceptval(-1)
    def _map(self, column: JsonColumn, byte: cython.uchar) -> cython.int:
        error: cython.int = 0
        keys: JsonColumn = column.keys
        items: JsonColumn = column.items
        if byte != 123:
            return self.mismatch(column, byte)
        if self.depth == MAX_DEPTH:
            return TOO_DEEP
        self.depth += 1
        self.at += 1
        if self.peek() == 125:
            self.at += 1
            self.depth -= 1
            error = -2
        while error == 0:
            error = self.key()
            if error:
                return error
            keys.append_bytes(self.key_data, self.key_start, self.key_size)
            error = self.read(items)
            if error:
                return error
            error = self.next_item(125)
        return column.append_list(items.length) if error == -2 else error

    @cython.cfunc
    @cython.exceptval(-1)
    def _pairs(self, column: JsonColumn, byte: cython.uchar) -> cython.int:
        """Reads a map whose keys are not strings: an array of arrays of key and value."""
        error: cython.int = 0
        items: JsonColumn = column.items
        if byte != 91:
            return self.mismatch(column, byte)
        if self.depth == MAX_DEPTH:
            return TOO_DEEP
        self.depth += 1
        self.at += 1
        if self.peek() == 93:
            self.at += 1
            self.depth -= 1
            error = -2
        while error == 0:
            if self.peek() != 91:
                return NOT_A_PAIR
            self.at += 1
            error = self.read(column.keys)
            if error:
                return error
            if self.peek() != 44:
                return NOT_A_PAIR
            self.at += 1
            error = self.read(items)
            if error:
                return error
            if self.peek() != 93:
                return NOT_A_PAIR
            self.at += 1
            error = self.next_item(93)
        return column.append_list(items.length) if error == -2 else error

    @cython.cfunc
    @cython.exceptval(-1)
    def skip(self) -> cython.int:
        """Skips a value of any type."""
        byte: cython.uchar = self.peek()
        error: cython.int = 0
        closing: cython.uchar
        if byte == 34:
            if self.string():
                return SYNTAX
            if self.has_escapes and self.text() is None:
                return SYNTAX
            return 0
        if byte == 45 or 48 <= byte <= 57:
            return self.number()
        if byte == 110 or byte == 116 or byte == 102:
            is_literal: cython.bint = self.literal(
                b"null" if byte == 110 else b"true" if byte == 116 else b"false"
            )
            return 0 if is_literal else SYNTAX
        if byte != 123 and byte != 91:
            return SYNTAX
        if self.depth == MAX_DEPTH:
            return TOO_DEEP
        closing = byte + 2
        self.depth += 1
        self.at += 1
        if self.peek() == closing:
            self.at += 1
            self.depth -= 1
            return 0
        while error == 0:
            if byte == 123:
                error = self.key()
                if error:
                    return error
            error = self.skip()
            if error:
                return error
            error = self.next_item(closing)
        return 0 if error == -2 else error


def read_rows(
    reader: JsonReader,
    content: cython.const[cython.uchar][::1],
    starts: cython.const[cython.int][::1],
    ends: cython.const[cython.int][::1],
    skipped: cython.const[cython.uchar][::1],
    is_in_envelope: cython.const[cython.uchar][::1],
    first: Size,
    stop: Size,
    errors: list,
) -> int:
    """Reads the documents from `first` to before `stop`, and returns where it stopped.

    It stops early at a document whose inferred type conflicts with those before. A row that is
    skipped or fails is null. Errors are appended as row, code, position and what
    `JsonReader.describe` returns. A value in an envelope is followed by a closing brace.
    """
    row: Size
    error: cython.int
    root: JsonColumn = reader.root
    data: Address = _address(content)
    count: Size = len(starts)
    if (
        not 0 <= first <= stop <= count
        or len(ends) < count
        or (len(skipped) and len(skipped) < count)
        or (len(is_in_envelope) and len(is_in_envelope) < count)
    ):
        raise ValueError("The rows are outside the buffers.")
    for row in range(first, stop):
        if len(skipped) and skipped[row]:
            root.pad(root.length + 1)
            continue
        if not 0 <= starts[row] <= ends[row] <= len(content):
            raise ValueError("A document is outside the buffer.")
        reader.open(data, starts[row], ends[row])
        if ends[row] == starts[row] and root.is_inferred:
            root.pad(root.length + 1)
            continue
        error = reader.read(root)
        if not error and len(is_in_envelope) and is_in_envelope[row]:
            if reader.peek() == 125:
                reader.at += 1
            else:
                error = NOT_AN_ENVELOPE
        if not error and reader.peek() != 0:
            error = SYNTAX
        if not error and reader.at != reader.end:
            error = SYNTAX
        if error:
            root.truncate(row - first)
            if error == CONFLICT and row > first:
                reader.describe()
                return row
            errors.append((row, error, reader.at - starts[row], *reader.describe()))
            root.pad(row - first + 1)
    return stop


def split_envelopes(
    content: cython.const[cython.uchar][::1],
    starts: cython.const[cython.int][::1],
    ends: cython.const[cython.int][::1],
    skipped: cython.uchar[::1],
    value_starts: cython.int[::1],
    value_ends: cython.int[::1],
    is_in_envelope: cython.uchar[::1],
    groups: cython.int[::1],
    errors: list,
) -> list:
    """Finds schema and payload of each document; returns the schemas' texts without duplicates.

    `groups` gets the index of each row's schema, -1 for a row that is skipped or fails. Of the
    usual documents, only the schema is read here: what follows the payload is checked with it.
    """
    texts: list = []
    by_text: dict = {}
    reader: JsonReader = JsonReader(None)
    row: Size
    start: Size
    size: Size = 0
    previous: bytes = b""
    error: cython.int
    data: Address = _address(content)
    count: Size = len(starts)
    schema_start: Size
    schema_size: Size
    is_known: cython.bint
    if (
        len(ends) < count
        or len(skipped) < count
        or len(value_starts) < count
        or len(value_ends) < count
        or len(is_in_envelope) < count
        or len(groups) < count
    ):
        raise ValueError("The rows are outside the buffers.")
    previous_group: cython.int = -1
    for row in range(count):
        groups[row] = -1
        value_starts[row] = value_ends[row] = 0
        is_in_envelope[row] = 0
        if skipped[row]:
            continue
        if not 0 <= starts[row] <= ends[row] <= len(content):
            raise ValueError("A document is outside the buffer.")
        reader.open(data, starts[row], ends[row])
        schema_start = -1
        schema_size = 0
        is_known = False
        error = 0 if reader.peek() == 123 else NOT_AN_ENVELOPE
        reader.at += 1
        if not error and reader.peek() == 125:
            error = NOT_AN_ENVELOPE
        while error == 0:
            error = reader.key()
            if error:
                break
            reader.peek()
            start = reader.at
            if reader.key_size == 6 and _is_equal(reader.key_data, reader.key_start, b"schema", 6):
                size = len(previous)
                is_known = (
                    size > 1
                    and reader.end - start >= size
                    and _is_equal(data, start, previous, size)
                )
                if is_known:
                    reader.at += size
                else:
                    error = reader.skip()
                schema_start = start
                schema_size = reader.at - start
            elif reader.key_size == 7 and _is_equal(
                reader.key_data, reader.key_start, b"payload", 7
            ):
                value_starts[row] = start
                if schema_start >= 0:
                    value_ends[row] = reader.end
                    is_in_envelope[row] = 1
                    break
                error = reader.skip()
                value_ends[row] = reader.at
            else:
                error = NOT_AN_ENVELOPE
            if error == 0:
                error = reader.next_item(125)
        if error == -2:
            error = 0
            if schema_start < 0 or value_ends[row] == 0:
                error = NOT_AN_ENVELOPE
            elif reader.peek() != 0 or reader.at != reader.end:
                error = SYNTAX
        if error:
            errors.append((row, error, reader.at - starts[row], *reader.describe()))
            skipped[row] = 1
            continue
        if not is_known:
            previous = _bytes_of(data, schema_start, schema_size)
            found = by_text.get(previous)
            if found is None:
                found = by_text[previous] = len(texts)
                texts.append(previous)
            previous_group = found
            if schema_size and data[schema_start] != 123:
                previous = b""  # only brackets say where a text ends
        groups[row] = previous_group
    return texts


def _precise_context() -> object:
    import decimal

    return decimal.Context(prec=500, Emax=10**6, Emin=-(10**6))


_PRECISE = _precise_context()


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _kind_of(byte: cython.uchar) -> cython.int:
    """Returns the kind of a value by its first byte, unless it is a number or null."""
    if byte == 34:
        return STRING
    if byte == 123:
        return STRUCT
    if byte == 91:
        return LIST
    if byte == 116 or byte == 102:
        return BOOLEAN
    return UNKNOWN


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _scaled(mantissa: Word, exponent: cython.int) -> cython.double:
    """Returns the exact product: mantissa and power are exact, so there is one rounding."""
    power: cython.double = 1.0
    value: cython.double = mantissa
    _index: cython.int
    for _index in range(exponent if exponent >= 0 else -exponent):
        power *= 10.0
    return value * power if exponent >= 0 else value / power


@cython.cfunc
@cython.exceptval(check=False)
def _unescape(data: Address, start: Size, size: Size, target: Octets, index: Size) -> Size:
    """Writes a string without escapes; returns its size, or -1 if an escape is invalid."""
    at: Size = start
    end: Size = start + size
    first: Size = index
    byte: cython.uchar
    code: cython.int
    low: cython.int
    while at < end:
        byte = data[at]
        at += 1
        if byte != 92:
            target[index] = byte
            index += 1
            continue
        if at == end:
            return -1
        byte = data[at]
        at += 1
        if byte == 117:
            code = _hexadecimals(data, at, end)
            at += 4
            if code < 0:
                return -1
            if 0xD800 <= code < 0xDC00 and end - at >= 6 and data[at] == 92:
                low = _hexadecimals(data, at + 2, end) if data[at + 1] == 117 else -1
                if 0xDC00 <= low < 0xE000:
                    code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00)
                    at += 6
            if 0xD800 <= code < 0xE000:
                code = 0xFFFD  # half of a pair is not a character
            index = _write_character(code, target, index)
            continue
        if byte == 110:
            byte = 10
        elif byte == 116:
            byte = 9
        elif byte == 114:
            byte = 13
        elif byte == 98:
            byte = 8
        elif byte == 102:
            byte = 12
        elif byte != 34 and byte != 92 and byte != 47:
            return -1
        target[index] = byte
        index += 1
    return index - first


@cython.cfunc
@cython.exceptval(check=False)
def _write_character(code: cython.int, target: Octets, index: Size) -> Size:
    if code < 0x80:
        target[index] = code
        return index + 1
    if code < 0x800:
        target[index] = 0xC0 | (code >> 6)
        target[index + 1] = 0x80 | (code & 0x3F)
        return index + 2
    if code < 0x10000:
        target[index] = 0xE0 | (code >> 12)
        target[index + 1] = 0x80 | ((code >> 6) & 0x3F)
        target[index + 2] = 0x80 | (code & 0x3F)
        return index + 3
    target[index] = 0xF0 | (code >> 18)
    target[index + 1] = 0x80 | ((code >> 12) & 0x3F)
    target[index + 2] = 0x80 | ((code >> 6) & 0x3F)
    target[index + 3] = 0x80 | (code & 0x3F)
    return index + 4


@cython.cfunc
@cython.exceptval(check=False)
def _hexadecimals(data: Address, at: Size, end: Size) -> cython.int:
    """Returns the number of four digits, or -1."""
    code: cython.int = 0
    index: Size
    byte: cython.uchar
    if end - at < 4:
        return -1
    for index in range(at, at + 4):
        byte = data[index]
        if 48 <= byte <= 57:
            code = code * 16 + byte - 48
        elif 97 <= byte <= 102:
            code = code * 16 + byte - 87
        elif 65 <= byte <= 70:
            code = code * 16 + byte - 55
        else:
            return -1
    return code


@cython.cfunc
@cython.exceptval(check=False)
def _decode_base64(data: Address, start: Size, size: Size, target: Octets, index: Size) -> Size:
    """Writes the bytes and returns how many they are; -1 if the text is not base64."""
    end: Size = start + size
    at: Size = start
    first: Size = index
    bits: cython.int
    one: cython.int
    position: cython.int
    missing: cython.int
    if size % 4:
        return -1
    while at < end:
        bits = 0
        missing = 0
        for position in range(4):
            one = _sextet(data[at + position])
            if one < 0:
                if data[at + position] != 61 or at + 4 < end or position < 2:
                    return -1
                one = 0
                missing += 1
            elif missing:
                return -1
            bits = bits << 6 | one
        target[index] = bits >> 16 & 0xFF
        index += 1
        if missing < 2:
            target[index] = bits >> 8 & 0xFF
            index += 1
        if missing < 1:
            target[index] = bits & 0xFF
            index += 1
        at += 4
    return index - first


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _sextet(byte: cython.uchar) -> cython.int:
    if 65 <= byte <= 90:
        return byte - 65
    if 97 <= byte <= 122:
        return byte - 71
    if 48 <= byte <= 57:
        return byte + 4
    if byte == 43:
        return 62
    return 63 if byte == 47 else -1


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _signed(value: Word) -> Long:
    return value


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _is_equal(data: Address, start: Size, other: bytes, size: Size) -> cython.bint:
    if cython.compiled:
        return memcmp(data + start, PyBytes_AS_STRING(other), size) == 0
    return data[start : start + size] == other


@cython.cfunc
def _bytes_of(data: Address, start: Size, size: Size) -> bytes:
    if cython.compiled:
        return PyBytes_FromStringAndSize(cython.cast(Characters, data + start), size)
    return bytes(data[start : start + size])


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
def _address_of(text: bytes) -> Address:
    return cython.cast(Address, PyBytes_AS_STRING(text)) if cython.compiled else text


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
