# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
"""Encodes Arrow buffers as Avro payloads: compiled with C types, or run as Python.

A schema and the columns of a batch become a tree of writers. Each writes the value at an index of
its column; no object is created for a record. The lengths of the columns are checked when their
writers are created.

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
    from cython.cimports.libc.string import memcpy

    Address = cython.typedef(cython.pointer[cython.const[cython.uchar]])
    Octets = cython.typedef(cython.pointer[cython.uchar])
    Size = cython.typedef(cython.Py_ssize_t)
    Long = cython.typedef(cython.longlong)
    Word = cython.typedef(cython.ulonglong)

COMPILED: bool = cython.compiled


class AvroValueError(Exception):
    """A value does not fit the schema: the reason, then the names of the fields around it."""


@cython.final
@cython.cclass
class AvroOutput:
    """A growing buffer of payloads, one after the other."""

    buffer: bytearray
    octets: Octets
    size: Size
    capacity: Size

    def __init__(self, capacity: Size) -> None:
        self.size = 0
        self.capacity = 0
        self.buffer = bytearray()
        self._enlarge(max(capacity, 256))

    @cython.cfunc
    @cython.exceptval(-1)
    def _enlarge(self, capacity: Size) -> cython.int:
        larger = bytearray(capacity)
        larger[: self.size] = memoryview(self.buffer)[: self.size]
        self.buffer = larger
        self.capacity = capacity
        if cython.compiled:
            self.octets = cython.cast(Octets, PyByteArray_AS_STRING(larger))
        else:
            self.octets = memoryview(larger)
        return 0

    @cython.cfunc
    @cython.inline
    @cython.exceptval(-1)
    def reserve(self, size: Size) -> cython.int:
        if self.capacity - self.size < size:
            if self.size + size > 0x7FFFFFFF:
                raise ValueError("The payloads have more than 2 GiB: encode fewer at a time.")
            self._enlarge(max(2 * self.capacity, self.size + size))
        return 0

    @cython.cfunc
    @cython.inline
    @cython.exceptval(-1)
    def varint(self, value: Long) -> cython.int:
        left: Word = _zigzag(value)
        self.reserve(10)
        while left > 0x7F:
            self.octets[self.size] = (left & 0x7F) | 0x80
            self.size += 1
            left >>= 7
        self.octets[self.size] = left
        self.size += 1
        return 0

    @cython.cfunc
    @cython.inline
    @cython.exceptval(-1)
    def copy(self, content: Address, start: Size, size: Size) -> cython.int:
        self.reserve(size)
        if not cython.compiled:
            self.octets[self.size : self.size + size] = content[start : start + size]
        elif size:
            memcpy(self.octets + self.size, content + start, size)
        self.size += size
        return 0


@cython.cclass
class AvroWriter:
    @cython.cfunc
    @cython.exceptval(-1)
    def write(self, index: Size, output: AvroOutput) -> cython.int:
        raise NotImplementedError


@cython.cclass
class AvroNullWriter(AvroWriter):
    @cython.cfunc
    @cython.exceptval(-1)
    def write(self, index: Size, output: AvroOutput) -> cython.int:
        return 0


@cython.cclass
class AvroPrefixedWriter(AvroWriter):
    """Constant bytes before a value: the number of a union's branch."""

    prefix: cython.const[cython.uchar][::1]
    inner: AvroWriter

    def __init__(self, prefix: bytes, inner: AvroWriter) -> None:
        self.prefix = prefix
        self.inner = inner

    @cython.cfunc
    @cython.exceptval(-1)
    def write(self, index: Size, output: AvroOutput) -> cython.int:
        output.copy(_address(self.prefix), 0, len(self.prefix))
        return self.inner.write(index, output)


@cython.cclass
class AvroNullableWriter(AvroWriter):
    """One writer for values, another for nulls."""

    bits: cython.const[cython.uchar][::1]
    offset: Size
    present: AvroWriter
    absent: AvroWriter

    def __init__(
        self,
        bits: cython.const[cython.uchar][::1],
        offset: Size,
        present: AvroWriter,
        absent: AvroWriter,
    ) -> None:
        self.bits = bits
        self.offset = offset
        self.present = present
        self.absent = absent

    @cython.cfunc
    @cython.exceptval(-1)
    def write(self, index: Size, output: AvroOutput) -> cython.int:
        at: Size = self.offset + index
        if (self.bits[at >> 3] >> (at & 7)) & 1:
            return self.present.write(index, output)
        return self.absent.write(index, output)


@cython.cclass
class AvroMismatchWriter(AvroWriter):
    """A value that cannot be written."""

    reason: str

    def __init__(self, reason: str) -> None:
        self.reason = reason

    @cython.cfunc
    @cython.exceptval(-1)
    def write(self, index: Size, output: AvroOutput) -> cython.int:
        raise AvroValueError(self.reason)


@cython.cclass
class AvroBooleanWriter(AvroWriter):
    bits: cython.const[cython.uchar][::1]
    offset: Size

    def __init__(self, bits: cython.const[cython.uchar][::1], offset: Size) -> None:
        self.bits = bits
        self.offset = offset

    @cython.cfunc
    @cython.exceptval(-1)
    def write(self, index: Size, output: AvroOutput) -> cython.int:
        at: Size = self.offset + index
        output.reserve(1)
        output.octets[output.size] = (self.bits[at >> 3] >> (at & 7)) & 1
        output.size += 1
        return 0


@cython.cclass
class AvroIntWriter(AvroWriter):
    values: cython.const[cython.int][::1]

    def __init__(self, values: cython.const[cython.int][::1]) -> None:
        self.values = values

    @cython.cfunc
    @cython.exceptval(-1)
    def write(self, index: Size, output: AvroOutput) -> cython.int:
        return output.varint(self.values[index])


@cython.cclass
class AvroLongWriter(AvroWriter):
    values: cython.const[cython.longlong][::1]

    def __init__(self, values: cython.const[cython.longlong][::1]) -> None:
        self.values = values

    @cython.cfunc
    @cython.exceptval(-1)
    def write(self, index: Size, output: AvroOutput) -> cython.int:
        return output.varint(self.values[index])


@cython.cclass
class AvroFloatWriter(AvroWriter):
    """Floats and doubles: Arrow and Avro have the same bytes."""

    content: cython.const[cython.uchar][::1]
    width: Size

    def __init__(self, content: cython.const[cython.uchar][::1], width: Size) -> None:
        self.content = content
        self.width = width

    @cython.cfunc
    @cython.exceptval(-1)
    def write(self, index: Size, output: AvroOutput) -> cython.int:
        return output.copy(_address(self.content), index * self.width, self.width)


@cython.cclass
class AvroBytesWriter(AvroWriter):
    offsets: cython.const[cython.int][::1]
    content: cython.const[cython.uchar][::1]

    def __init__(
        self,
        offsets: cython.const[cython.int][::1],
        content: cython.const[cython.uchar][::1],
    ) -> None:
        self.offsets = offsets
        self.content = content

    @cython.cfunc
    @cython.exceptval(-1)
    def write(self, index: Size, output: AvroOutput) -> cython.int:
        start: Size = self.offsets[index]
        size: Size = self.offsets[index + 1] - start
        output.varint(size)
        return output.copy(_address(self.content), start, size)


@cython.cclass
class AvroFixedWriter(AvroWriter):
    offsets: cython.const[cython.int][::1]
    content: cython.const[cython.uchar][::1]
    size: Size

    def __init__(
        self,
        offsets: cython.const[cython.int][::1],
        content: cython.const[cython.uchar][::1],
        size: Size,
    ) -> None:
        self.offsets = offsets
        self.content = content
        self.size = size

    @cython.cfunc
    @cython.exceptval(-1)
    def write(self, index: Size, output: AvroOutput) -> cython.int:
        start: Size = self.offsets[index]
        size: Size = self.offsets[index + 1] - start
        if size != self.size:
            raise AvroValueError(f"it has {size} bytes, and the schema requires {self.size}")
        return output.copy(_address(self.content), start, size)


@cython.cclass
class AvroDecimalWriter(AvroWriter):
    """Sixteen little-endian bytes, written big-endian with a fixed or the minimum size."""

    content: cython.const[cython.uchar][::1]
    size: Size

    def __init__(self, content: cython.const[cython.uchar][::1], size: Size) -> None:
        """A negative size means the minimum size, with its length before it."""
        self.content = content
        self.size = size

    @cython.cfunc
    @cython.exceptval(-1)
    def write(self, index: Size, output: AvroOutput) -> cython.int:
        start: Size = index * 16
        sign: cython.uchar = 0
        if self.content[start + 15] >= 0x80:
            sign = 0xFF
        needed: Size = 16
        while (
            needed > 1
            and self.content[start + needed - 1] == sign
            and (self.content[start + needed - 2] >= 0x80) == (sign == 0xFF)
        ):
            needed -= 1
        size: Size = self.size
        if size < 0:
            size = needed
            output.varint(size)
        if size < needed:
            raise AvroValueError(f"it takes {needed} bytes, and the schema has {size}")
        output.reserve(size)
        position: Size
        for position in range(size):
            output.octets[output.size + size - 1 - position] = (
                self.content[start + position] if position < 16 else sign
            )
        output.size += size
        return 0


@cython.cclass
class AvroRecordWriter(AvroWriter):
    writers: list
    names: list

    def __init__(self, writers: list, names: list) -> None:
        self.writers = writers
        self.names = names

    @cython.cfunc
    @cython.exceptval(-1)
    def write(self, index: Size, output: AvroOutput) -> cython.int:
        position: Size = 0
        writer: AvroWriter
        try:
            for position in range(len(self.writers)):
                writer = cython.cast(AvroWriter, self.writers[position])
                writer.write(index, output)
        except AvroValueError as error:
            raise AvroValueError(*error.args, self.names[position]) from None
        return 0


@cython.cclass
class AvroArrayWriter(AvroWriter):
    """The items of a list, or the entries of a map: one block, and the end marker."""

    offsets: cython.const[cython.int][::1]
    writers: list

    def __init__(self, offsets: cython.const[cython.int][::1], writers: list) -> None:
        self.offsets = offsets
        self.writers = writers

    @cython.cfunc
    @cython.exceptval(-1)
    def write(self, index: Size, output: AvroOutput) -> cython.int:
        item: Size
        position: Size
        writer: AvroWriter
        start: Size = self.offsets[index]
        end: Size = self.offsets[index + 1]
        if end > start:
            output.varint(end - start)
            for item in range(start, end):
                for position in range(len(self.writers)):
                    writer = cython.cast(AvroWriter, self.writers[position])
                    writer.write(item, output)
        return output.varint(0)


@cython.cclass
class AvroUnionWriter(AvroWriter):
    """A struct with a field for each branch of a union: the first that is set is written."""

    bits: list  # validity, as writers
    writers: list

    def __init__(self, present: list, writers: list) -> None:
        """`present` has, for each writer, a column of int: 1 if the branch is set."""
        self.bits = present
        self.writers = writers

    @cython.cfunc
    @cython.exceptval(-1)
    def write(self, index: Size, output: AvroOutput) -> cython.int:
        position: Size
        writer: AvroWriter
        present: AvroIntWriter
        for position in range(len(self.writers)):
            present = cython.cast(AvroIntWriter, self.bits[position])
            if present.values[index]:
                writer = cython.cast(AvroWriter, self.writers[position])
                return writer.write(index, output)
        raise AvroValueError("no branch of the union is set")


def write_payloads(
    root: AvroWriter,
    bits: cython.const[cython.uchar][::1],
    first: Size,
    header: cython.const[cython.uchar][::1],
    offsets: cython.int[::1],
    capacity: Size,
) -> bytearray:
    """Returns the payloads, each after the header, and fills `offsets`.

    A row whose bit is not set has no payload; without bits all rows have one.
    """
    output: AvroOutput = AvroOutput(capacity)
    row: Size = 0
    count: Size = len(offsets) - 1
    has_nulls: cython.bint = len(bits) > 0
    header_bytes: Size = len(header)
    if has_nulls and len(bits) * 8 < first + count:
        raise ValueError("There are fewer bits than rows.")
    offsets[0] = 0
    try:
        for row in range(count):
            if not has_nulls or (bits[(first + row) >> 3] >> ((first + row) & 7)) & 1:
                output.copy(_address(header), 0, header_bytes)
                root.write(row, output)
            offsets[row + 1] = output.size
    except AvroValueError as error:
        reason, *names = error.args
        where = f" in field {'.'.join(reversed(names))!r}" if names else ""
        raise ValueError(f"Row {row} cannot be written{where}: {reason}.") from None
    return output.buffer


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _address(buffer: cython.const[cython.uchar][::1]) -> Address:
    return cython.address(buffer[0]) if cython.compiled else buffer


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _zigzag(value: Long) -> Word:
    return 2 * _unsigned(value) if value >= 0 else 2 * _unsigned(-(value + 1)) + 1


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _unsigned(value: Long) -> Word:
    return value
