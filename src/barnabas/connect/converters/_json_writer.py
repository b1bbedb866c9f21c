# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
"""Writes Arrow columns as JSON, byte for byte as Jackson does: compiled, or run as Python.

A writer returns 0, or 1 if a value is null that must not be. Its path then names the field.
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
    from cython.cimports.cpython.bytes import PyBytes_AS_STRING
    from cython.cimports.libc.math import copysign
    from cython.cimports.libc.string import memcpy

    Address = cython.typedef(cython.pointer[cython.const[cython.uchar]])
    Octets = cython.typedef(cython.pointer[cython.uchar])
    Size = cython.typedef(cython.Py_ssize_t)
    Long = cython.typedef(cython.longlong)
    Word = cython.typedef(cython.ulonglong)
else:
    from math import copysign

COMPILED: bool = cython.compiled


@cython.final
@cython.cclass
class JacksonOutput:
    """A growing buffer of text."""

    buffer: bytearray
    octets: Octets
    size: Size
    capacity: Size
    path: list

    def __init__(self, capacity: Size) -> None:
        self.size = 0
        self.capacity = 0
        self.buffer = bytearray()
        self.path = []
        self._enlarge(max(capacity, 256))

    def finish(self) -> bytearray:
        """Returns the text; the output must not be used afterwards."""
        if not cython.compiled:
            self.octets = None
        del self.buffer[self.size :]
        return self.buffer

    @cython.cfunc
    @cython.exceptval(-1)
    def _enlarge(self, capacity: Size) -> cython.int:
        larger = bytearray(capacity)
        larger[: self.size] = memoryview(self.buffer)[: self.size]
        self.buffer = larger
        self.capacity = capacity
        self.octets = (
            cython.cast(Octets, PyByteArray_AS_STRING(larger)) if cython.compiled else larger
        )
        return 0

    @cython.cfunc
    @cython.inline
    @cython.exceptval(-1)
    def reserve(self, size: Size) -> cython.int:
        if self.capacity - self.size < size:
            if self.size + size > 0x7FFFFFFF:
                raise ValueError("The documents have more than 2 GiB: take fewer at a time.")
            self._enlarge(max(2 * self.capacity, self.size + size))
        return 0

    @cython.cfunc
    @cython.inline
    @cython.exceptval(-1)
    def put(self, byte: cython.uchar) -> cython.int:
        self.reserve(1)
        self.octets[self.size] = byte
        self.size += 1
        return 0

    @cython.cfunc
    @cython.inline
    @cython.exceptval(-1)
    def copy(self, content: Address, start: Size, size: Size) -> cython.int:
        self.reserve(size)
        if not cython.compiled:
            self.buffer[self.size : self.size + size] = content[start : start + size]
        elif size:
            memcpy(self.octets + self.size, content + start, size)
        self.size += size
        return 0

    @cython.cfunc
    @cython.exceptval(-1)
    def text(self, text: bytes) -> cython.int:
        return self.copy(_address_of(text), 0, len(text))

    @cython.cfunc
    @cython.exceptval(-1)
    def quote(self, content: Address, start: Size, size: Size) -> cython.int:
        """Writes a string. A character outside the basic plane is two escapes, as in Jackson."""
        at: Size = start
        end: Size = start + size
        byte: cython.uchar
        self.reserve(size + 2)
        self.octets[self.size] = 34
        self.size += 1
        while at < end:
            byte = content[at]
            if byte >= 32 and byte != 34 and byte != 92 and byte < 0xF0:
                self.reserve(1)
                self.octets[self.size] = byte
                self.size += 1
                at += 1
            elif byte >= 0xF0 and end - at >= 4:
                self._surrogates(
                    (byte & 7) << 18
                    | (content[at + 1] & 0x3F) << 12
                    | (content[at + 2] & 0x3F) << 6
                    | (content[at + 3] & 0x3F)
                )
                at += 4
            else:
                self._escape(byte)
                at += 1
        return self.put(34)

    @cython.cfunc
    @cython.exceptval(-1)
    def _escape(self, byte: cython.uchar) -> cython.int:
        self.put(92)
        if byte == 34 or byte == 92:
            return self.put(byte)
        if byte == 10:
            return self.put(110)
        if byte == 13:
            return self.put(114)
        if byte == 9:
            return self.put(116)
        if byte == 8:
            return self.put(98)
        if byte == 12:
            return self.put(102)
        return self._unit(byte)

    @cython.cfunc
    @cython.exceptval(-1)
    def _surrogates(self, code: cython.int) -> cython.int:
        self.put(92)
        self._unit(0xD800 + ((code - 0x10000) >> 10))
        self.put(92)
        return self._unit(0xDC00 + ((code - 0x10000) & 0x3FF))

    @cython.cfunc
    @cython.exceptval(-1)
    def _unit(self, unit: cython.int) -> cython.int:
        self.put(117)
        self.put(_hexadecimal(unit >> 12))
        self.put(_hexadecimal(unit >> 8 & 15))
        self.put(_hexadecimal(unit >> 4 & 15))
        return self.put(_hexadecimal(unit & 15))

    @cython.cfunc
    @cython.exceptval(-1)
    def base64(self, content: Address, start: Size, size: Size) -> cython.int:
        at: Size = start
        end: Size = start + size
        bits: cython.int
        self.reserve((size + 2) // 3 * 4 + 2)
        self.put(34)
        while end - at >= 3:
            bits = content[at] << 16 | content[at + 1] << 8 | content[at + 2]
            self.put(_sextet(bits >> 18))
            self.put(_sextet(bits >> 12 & 63))
            self.put(_sextet(bits >> 6 & 63))
            self.put(_sextet(bits & 63))
            at += 3
        if end - at == 2:
            bits = content[at] << 16 | content[at + 1] << 8
            self.put(_sextet(bits >> 18))
            self.put(_sextet(bits >> 12 & 63))
            self.put(_sextet(bits >> 6 & 63))
            self.put(61)
        elif end - at == 1:
            bits = content[at] << 16
            self.put(_sextet(bits >> 18))
            self.put(_sextet(bits >> 12 & 63))
            self.put(61)
            self.put(61)
        return self.put(34)

    @cython.cfunc
    @cython.exceptval(-1)
    def integer(self, value: Long) -> cython.int:
        if value >= 0:
            return self.natural(value)
        self.put(45)
        # the magnitude of the least number is not a Long
        return self.natural(_word(-(value + 1)) + 1)

    @cython.cfunc
    @cython.exceptval(-1)
    def natural(self, value: Word) -> cython.int:
        size: cython.int = _digit_count(value)
        at: Size
        self.reserve(size)
        self.size += size
        at = self.size
        while size:
            at -= 1
            self.octets[at] = 48 + value % 10
            value = value // 10
            size -= 1
        return 0

    @cython.cfunc
    @cython.exceptval(-1)
    def real(self, value: cython.double, is_single: cython.bint) -> cython.int:
        """Writes a number as Java's `toString`: the fewest digits that read back as the number."""
        if value != value:
            return self.text(b"NaN")
        if value == 0:
            return self.text(b"-0.0" if copysign(1.0, value) < 0 else b"0.0")
        if value < 0:
            self.put(45)
            value = -value
        if value > 1.7976931348623157e308:
            return self.text(b"Infinity")
        return self._positive(value, is_single)

    @cython.cfunc
    @cython.exceptval(-1)
    def _positive(self, value: cython.double, is_single: cython.bint) -> cython.int:
        """Few digits are found by trying: at most 15, or 6, are those of only one number."""
        power: cython.double = 1.0
        limit: cython.double = 1e6 if is_single else 1e15
        scaled: cython.double
        digits: Word
        fraction_digits: cython.int
        for fraction_digits in range(10):
            scaled = value * power
            if scaled >= limit:
                break
            if scaled >= 1 or fraction_digits > 3:
                digits = _rounded(scaled)
                if digits and _reads_as(digits, power, value, is_single):
                    return self._digits(digits, -fraction_digits)
            power *= 10.0
        return self._searched(value, is_single)

    @cython.cfunc
    @cython.exceptval(-1)
    def _searched(self, value: cython.double, is_single: cython.bint) -> cython.int:
        text: str
        byte: cython.int
        digits: Word = 0
        exponent: cython.int = 0
        at: cython.int
        size: cython.int
        is_fraction: cython.bint = False
        text = shortest_single(value) if is_single else repr(value)
        if len(text) > 1 and text[1] == "e":  # Java takes the closest of two digits then
            text = format(value, ".1e")
        written: bytes = text.encode()
        size = len(written)
        for at in range(size):
            byte = written[at]
            if byte == 46:
                is_fraction = True
            elif byte == 101:
                exponent += int(written[at + 1 :])
                break
            else:
                digits = digits * 10 + (byte - 48)
                exponent -= is_fraction
        return self._digits(digits, exponent)

    @cython.cfunc
    @cython.exceptval(-1)
    def _digits(self, digits: Word, exponent: cython.int) -> cython.int:
        """Writes digits * 10^exponent: plainly from 0.001 to 10^7, else with an exponent."""
        count: cython.int
        leading: cython.int
        while digits % 10 == 0:
            digits = digits // 10
            exponent += 1
        count = _digit_count(digits)
        leading = count + exponent  # the digits before the point
        if -2 <= leading <= 7:
            if leading <= 0:
                self.text(b"0.")
                while leading < 0:
                    self.put(48)
                    leading += 1
                return self.natural(digits)
            if exponent >= 0:
                self.natural(digits)
                while exponent > 0:
                    self.put(48)
                    exponent -= 1
                return self.text(b".0")
            return self._with_point(digits, count, leading)
        if count == 1:
            self.natural(digits)
            self.text(b".0")
        else:
            self._with_point(digits, count, 1)
        self.put(69)
        return self.integer(leading - 1)

    @cython.cfunc
    @cython.exceptval(-1)
    def _with_point(self, digits: Word, count: cython.int, leading: cython.int) -> cython.int:
        """Writes digits with a point after the first `leading` of them."""
        start: Size = self.size
        index: cython.int
        self.natural(digits)
        self.put(48)
        for index in range(count - leading):
            self.octets[start + count - index] = self.octets[start + count - index - 1]
        self.octets[start + leading] = 46
        return 0


@cython.cclass
class JacksonWriter:
    """Writes the value at an index of its column. The base class has only nulls."""

    bits: cython.const[cython.uchar][::1]
    offset: Size
    null_text: bytes

    def __init__(
        self, bits: cython.const[cython.uchar][::1], offset: Size, null_text: object
    ) -> None:
        """Without bits, no value is null. `null_text` is None if nulls are errors."""
        self.bits = bits
        self.offset = offset
        self.null_text = null_text

    @cython.cfunc
    @cython.inline
    @cython.exceptval(check=False)
    def is_null(self, index: Size) -> cython.bint:
        at: Size = self.offset + index
        return len(self.bits) > 0 and not (self.bits[at >> 3] >> (at & 7)) & 1

    @cython.cfunc
    @cython.inline
    @cython.exceptval(-1)
    def write(self, index: Size, output: JacksonOutput) -> cython.int:
        if self.is_null(index):
            if self.null_text is None:
                return 1
            return output.text(self.null_text)
        return self.write_present(index, output)

    @cython.cfunc
    @cython.exceptval(-1)
    def write_present(self, index: Size, output: JacksonOutput) -> cython.int:
        return output.text(b"null")


@cython.final
@cython.cclass
class JacksonBooleanWriter(JacksonWriter):
    values: cython.const[cython.uchar][::1]
    first: Size

    def __init__(
        self,
        bits: cython.const[cython.uchar][::1],
        offset: Size,
        null_text: object,
        values: cython.const[cython.uchar][::1],
        first: Size,
    ) -> None:
        JacksonWriter.__init__(self, bits, offset, null_text)
        self.values = values
        self.first = first

    @cython.cfunc
    @cython.exceptval(-1)
    def write_present(self, index: Size, output: JacksonOutput) -> cython.int:
        at: Size = self.first + index
        return output.text(b"true" if self.values[at >> 3] >> (at & 7) & 1 else b"false")


@cython.final
@cython.cclass
class JacksonIntegerWriter(JacksonWriter):
    values: cython.const[cython.longlong][::1]

    def __init__(
        self,
        bits: cython.const[cython.uchar][::1],
        offset: Size,
        null_text: object,
        values: cython.const[cython.longlong][::1],
    ) -> None:
        JacksonWriter.__init__(self, bits, offset, null_text)
        self.values = values

    @cython.cfunc
    @cython.exceptval(-1)
    def write_present(self, index: Size, output: JacksonOutput) -> cython.int:
        return output.integer(self.values[index])


@cython.final
@cython.cclass
class JacksonRealWriter(JacksonWriter):
    """NaN and infinity are strings."""

    values: cython.const[cython.double][::1]
    is_single: cython.bint

    def __init__(
        self,
        bits: cython.const[cython.uchar][::1],
        offset: Size,
        null_text: object,
        values: cython.const[cython.double][::1],
        is_single: cython.bint,
    ) -> None:
        JacksonWriter.__init__(self, bits, offset, null_text)
        self.values = values
        self.is_single = is_single

    @cython.cfunc
    @cython.exceptval(-1)
    def write_present(self, index: Size, output: JacksonOutput) -> cython.int:
        value: cython.double = self.values[index]
        if value - value == 0:
            return output.real(value, self.is_single)
        output.put(34)
        output.real(value, self.is_single)
        return output.put(34)


@cython.final
@cython.cclass
class JacksonTextWriter(JacksonWriter):
    """Text that is quoted or written as it is, or bytes as base64."""

    offsets: cython.const[cython.int][::1]
    content: cython.const[cython.uchar][::1]
    mode: cython.int

    def __init__(
        self,
        bits: cython.const[cython.uchar][::1],
        offset: Size,
        null_text: object,
        offsets: cython.const[cython.int][::1],
        content: cython.const[cython.uchar][::1],
        mode: cython.int,
    ) -> None:
        """`mode` is 0 for strings, 1 for text as it is and 2 for bytes."""
        JacksonWriter.__init__(self, bits, offset, null_text)
        self.offsets = offsets
        self.content = content
        self.mode = mode

    @cython.cfunc
    @cython.exceptval(-1)
    def write_present(self, index: Size, output: JacksonOutput) -> cython.int:
        start: Size = self.offsets[index]
        size: Size = self.offsets[index + 1] - start
        if self.mode == 0:
            return output.quote(_address(self.content), start, size)
        if self.mode == 1:
            return output.copy(_address(self.content), start, size)
        return output.base64(_address(self.content), start, size)


@cython.final
@cython.cclass
class JacksonDecimalWriter(JacksonWriter):
    """The unscaled value in base64, big-endian and without needless bytes."""

    cells: cython.const[cython.uchar][::1]
    width: Size

    def __init__(
        self,
        bits: cython.const[cython.uchar][::1],
        offset: Size,
        null_text: object,
        cells: cython.const[cython.uchar][::1],
        width: Size,
    ) -> None:
        JacksonWriter.__init__(self, bits, offset, null_text)
        self.cells = cells
        self.width = width

    @cython.cfunc
    @cython.exceptval(-1)
    def write_present(self, index: Size, output: JacksonOutput) -> cython.int:
        first: Size = index * self.width
        size: Size = self.width
        at: Size
        sign: cython.uchar = 0xFF if self.cells[first + size - 1] & 0x80 else 0
        while (
            size > 1
            and self.cells[first + size - 1] == sign
            and (self.cells[first + size - 2] ^ sign) < 0x80
        ):
            size -= 1
        content: bytearray = bytearray(size)
        for at in range(size):
            content[at] = self.cells[first + size - 1 - at]
        return output.base64(_address_of(bytes(content)), 0, size)


@cython.final
@cython.cclass
class JacksonObjectWriter(JacksonWriter):
    names: list  # with quotes and colon
    writers: list
    omits_nulls: cython.bint

    def __init__(
        self,
        bits: cython.const[cython.uchar][::1],
        offset: Size,
        null_text: object,
        names: list,
        writers: list,
        omits_nulls: cython.bint,
    ) -> None:
        JacksonWriter.__init__(self, bits, offset, null_text)
        self.names = names
        self.writers = writers
        self.omits_nulls = omits_nulls

    @cython.cfunc
    @cython.exceptval(-1)
    def write_present(self, index: Size, output: JacksonOutput) -> cython.int:
        position: Size
        writer: JacksonWriter
        name: bytes
        is_first: cython.bint = True
        output.put(123)
        for position in range(len(self.writers)):
            writer = cython.cast(JacksonWriter, self.writers[position])
            if self.omits_nulls and writer.is_null(index):
                continue
            if not is_first:
                output.put(44)
            is_first = False
            name = cython.cast(bytes, self.names[position])
            output.copy(_address_of(name), 0, len(name))
            if writer.write(index, output):
                output.path.append(name)
                return 1
        return output.put(125)


@cython.final
@cython.cclass
class JacksonArrayWriter(JacksonWriter):
    """An array, an object with keys, or an array of arrays of key and value."""

    offsets: cython.const[cython.int][::1]
    keys: JacksonWriter
    items: JacksonWriter
    is_object: cython.bint

    def __init__(
        self,
        bits: cython.const[cython.uchar][::1],
        offset: Size,
        null_text: object,
        offsets: cython.const[cython.int][::1],
        keys: object,
        items: JacksonWriter,
        is_object: cython.bint,
    ) -> None:
        JacksonWriter.__init__(self, bits, offset, null_text)
        self.offsets = offsets
        self.keys = keys
        self.items = items
        self.is_object = is_object

    @cython.cfunc
    @cython.exceptval(-1)
    def write_present(self, index: Size, output: JacksonOutput) -> cython.int:
        item: Size
        start: Size = self.offsets[index]
        output.put(123 if self.is_object else 91)
        for item in range(start, self.offsets[index + 1]):
            if item > start:
                output.put(44)
            if self.keys is not None:
                if not self.is_object:
                    output.put(91)
                if self.keys.write(item, output):
                    return 1
                output.put(58 if self.is_object else 44)
            if self.items.write(item, output):
                return 1
            if self.keys is not None and not self.is_object:
                output.put(93)
        return output.put(125 if self.is_object else 93)


def write_documents(
    root: JacksonWriter,
    prefix: bytes,
    suffix: bytes,
    null_document: object,
    offsets: cython.int[::1],
    capacity: Size,
    errors: list,
) -> bytearray:
    """Returns the documents, each within prefix and suffix, and fills `offsets`.

    A null row is `null_document`, or has no document. Errors are appended as row and path.
    """
    output: JacksonOutput = JacksonOutput(capacity)
    row: Size
    start: Size
    null_text: bytes = null_document
    offsets[0] = 0
    for row in range(len(offsets) - 1):
        start = output.size
        if root.is_null(row):
            if null_text is not None:
                output.text(null_text)
        else:
            output.copy(_address_of(prefix), 0, len(prefix))
            if root.write_present(row, output):
                errors.append((row, output.path))
                output.path = []
                output.size = start
            else:
                output.copy(_address_of(suffix), 0, len(suffix))
        offsets[row + 1] = output.size
    return output.finish()


def write_reals(
    values: cython.const[cython.double][::1], is_single: cython.bint, offsets: cython.int[::1]
) -> bytearray:
    """Returns the texts of numbers as Java's `toString`, and fills `offsets`."""
    output: JacksonOutput = JacksonOutput(16 * len(values))
    row: Size
    offsets[0] = 0
    for row in range(len(offsets) - 1):
        output.real(values[row], is_single)
        offsets[row + 1] = output.size
    return output.finish()


def shortest_single(value: float) -> str:
    """Returns the fewest digits that read back as the same number of 32 bits."""
    precision: cython.int
    for precision in range(1, 9):
        text = format(value, f".{precision}g")
        if _as_single(float(text)) == value:
            return text
    return format(value, ".9g")


@cython.cfunc
@cython.exceptval(check=False)
def _as_single(value: cython.double) -> cython.double:
    if cython.compiled:
        return cython.cast(cython.float, value)
    import struct

    try:
        return struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        return float("inf")


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _reads_as(
    digits: Word, power: cython.double, value: cython.double, is_single: cython.bint
) -> cython.bint:
    read: cython.double = digits / power
    return (_as_single(read) if is_single else read) == value


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _rounded(value: cython.double) -> Word:
    if cython.compiled:
        return cython.cast(Word, value + 0.5)
    return int(value + 0.5)


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _digit_count(value: Word) -> cython.int:
    count: cython.int = 1
    while value >= 10:
        value = value // 10
        count += 1
    return count


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _word(value: Long) -> Word:
    return value


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _sextet(value: cython.int) -> cython.uchar:
    if value < 26:
        return 65 + value
    if value < 52:
        return 71 + value
    if value < 62:
        return value - 4
    return 43 if value == 62 else 47


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _hexadecimal(digit: cython.int) -> cython.uchar:
    return digit + (48 if digit < 10 else 55)


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
