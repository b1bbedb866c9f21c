# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
"""Loops over the text of JSON documents: compiled with C types, or run as Python.

`join_objects` concatenates documents, so that Arrow reads them all at once. That is safe only if
each is one whole object, or rows would be mixed up: so brackets are counted.

`write_documents` writes columns as documents. Arrow has converted every scalar to text before;
here text is quoted and joined.
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
    from cython.cimports.libc.string import memcpy

    Address = cython.typedef(cython.pointer[cython.const[cython.uchar]])
    Octets = cython.typedef(cython.pointer[cython.uchar])
    Size = cython.typedef(cython.Py_ssize_t)

COMPILED: bool = cython.compiled


def join_objects(
    offsets: cython.const[cython.int][::1],
    validity: cython.const[cython.uchar][::1],
    content: cython.const[cython.uchar][::1],
    first: Size,
    count: Size,
    header_bytes: Size,
) -> bytearray | None:
    """Returns one document a line, {} for a null; None if a document is not one whole object."""
    row: Size
    start: Size
    end: Size
    has_nulls: cython.bint = len(validity) > 0
    if count <= 0:
        return bytearray()
    if (
        first < 0
        or len(offsets) < first + count + 1
        or (has_nulls and len(validity) * 8 < first + count)
        or offsets[first] < 0
        or offsets[first + count] > len(content)
    ):
        raise ValueError("The buffers of the payloads do not fit each other.")
    output: JsonOutput = JsonOutput(offsets[first + count] - offsets[first] + 3 * count)
    data: Address = _address(content)
    for row in range(count):
        if has_nulls and not (validity[(first + row) >> 3] >> ((first + row) & 7)) & 1:
            output.copy(_address_of(b"{}\n"), 0, 3)
            continue
        start = offsets[first + row] + header_bytes
        end = offsets[first + row + 1]
        if start > end or not _is_object(data, start, end):
            return None
        output.copy(data, start, end - start)
        output.put(10)
    return output.finish()


@cython.cfunc
@cython.exceptval(check=False)
def _is_object(data: Address, start: Size, end: Size) -> cython.bint:
    """Whether the text starts with a brace, and only white space follows its closing brace."""
    at: Size = start
    depth: cython.int = 0
    byte: cython.uchar
    while at < end and _is_space(data[at]):
        at += 1
    if at == end or data[at] != 123:
        return False
    while at < end:
        byte = data[at]
        at += 1
        if byte == 34:
            while at < end and data[at] != 34:
                if data[at] < 32:
                    return False
                at += 2 if data[at] == 92 else 1
            if at >= end:
                return False
            at += 1
        elif byte == 123 or byte == 91:
            depth += 1
        elif byte == 125 or byte == 93:
            depth -= 1
            if depth == 0:
                break
        elif byte == 0:
            return False
    while at < end and _is_space(data[at]):
        at += 1
    return depth == 0 and at == end


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _is_space(byte: cython.uchar) -> cython.bint:
    return byte == 32 or byte == 10 or byte == 13 or byte == 9


@cython.final
@cython.cclass
class JsonOutput:
    """A growing buffer of text."""

    buffer: bytearray
    octets: Octets
    size: Size
    capacity: Size

    def __init__(self, capacity: Size) -> None:
        self.size = 0
        self.capacity = 0
        self.buffer = bytearray()
        self._enlarge(max(capacity, 256))

    def finish(self) -> bytearray:
        """Returns the text; the output must not be used afterwards."""
        del self.buffer[self.size :]
        return self.buffer

    @cython.cfunc
    @cython.exceptval(-1)
    def _enlarge(self, capacity: Size) -> cython.int:
        larger = bytearray(capacity)
        larger[: self.size] = memoryview(self.buffer)[: self.size]
        self.buffer = larger
        self.capacity = capacity
        if cython.compiled:
            self.octets = cython.cast(Octets, PyByteArray_AS_STRING(larger))
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
        if cython.compiled:
            self.octets[self.size] = byte
        else:
            self.buffer[self.size] = byte
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
    def quote(self, content: Address, start: Size, size: Size) -> cython.int:
        at: Size = start
        end: Size = start + size
        plain: Size = start
        byte: cython.uchar
        self.put(34)
        while at < end:
            byte = content[at]
            if byte < 32 or byte == 34 or byte == 92:
                self.copy(content, plain, at - plain)
                plain = at + 1
                self.put(92)
                if byte >= 32:
                    self.put(byte)
                else:
                    self.copy(_address_of(b"u00"), 0, 3)
                    self.put(_hexadecimal(byte >> 4))
                    self.put(_hexadecimal(byte & 15))
            at += 1
        self.copy(content, plain, end - plain)
        return self.put(34)


@cython.cclass
class JsonWriter:
    """Writes the value at an index of its column, or null."""

    bits: cython.const[cython.uchar][::1]
    offset: Size

    def __init__(self, bits: cython.const[cython.uchar][::1], offset: Size) -> None:
        """Without bits, no value is null."""
        self.bits = bits
        self.offset = offset

    @cython.cfunc
    @cython.inline
    @cython.exceptval(check=False)
    def is_null(self, index: Size) -> cython.bint:
        at: Size = self.offset + index
        return len(self.bits) > 0 and not (self.bits[at >> 3] >> (at & 7)) & 1

    @cython.cfunc
    @cython.exceptval(-1)
    def write(self, index: Size, output: JsonOutput) -> cython.int:
        if self.is_null(index):
            return output.copy(_address_of(b"null"), 0, 4)
        return self.write_present(index, output)

    @cython.cfunc
    @cython.exceptval(-1)
    def write_present(self, index: Size, output: JsonOutput) -> cython.int:
        return output.copy(_address_of(b"null"), 0, 4)


@cython.cclass
class JsonTextWriter(JsonWriter):
    offsets: cython.const[cython.int][::1]
    content: cython.const[cython.uchar][::1]
    is_quoted: cython.bint

    def __init__(
        self,
        bits: cython.const[cython.uchar][::1],
        offset: Size,
        offsets: cython.const[cython.int][::1],
        content: cython.const[cython.uchar][::1],
        is_quoted: cython.bint,
    ) -> None:
        self.bits = bits
        self.offset = offset
        self.offsets = offsets
        self.content = content
        self.is_quoted = is_quoted

    @cython.cfunc
    @cython.exceptval(-1)
    def write_present(self, index: Size, output: JsonOutput) -> cython.int:
        start: Size = self.offsets[index]
        size: Size = self.offsets[index + 1] - start
        if self.is_quoted:
            return output.quote(_address(self.content), start, size)
        return output.copy(_address(self.content), start, size)


@cython.cclass
class JsonObjectWriter(JsonWriter):
    """An object. Null fields are left out unless they are required."""

    names: list  # with quotes and colon
    writers: list
    required: list

    def __init__(
        self,
        bits: cython.const[cython.uchar][::1],
        offset: Size,
        names: list,
        writers: list,
        required: list,
    ) -> None:
        self.bits = bits
        self.offset = offset
        self.names = names
        self.writers = writers
        self.required = required

    @cython.cfunc
    @cython.exceptval(-1)
    def write_present(self, index: Size, output: JsonOutput) -> cython.int:
        position: Size
        writer: JsonWriter
        name: bytes
        is_first: cython.bint = True
        output.put(123)
        for position in range(len(self.writers)):
            writer = cython.cast(JsonWriter, self.writers[position])
            if writer.is_null(index) and not self.required[position]:
                continue
            if not is_first:
                output.put(44)
            is_first = False
            name = self.names[position]
            output.copy(_address_of(name), 0, len(name))
            writer.write(index, output)
        return output.put(125)


@cython.cclass
class JsonArrayWriter(JsonWriter):
    """An array, or with keys an object."""

    offsets: cython.const[cython.int][::1]
    keys: JsonWriter
    items: JsonWriter

    def __init__(
        self,
        bits: cython.const[cython.uchar][::1],
        offset: Size,
        offsets: cython.const[cython.int][::1],
        keys: object,
        items: JsonWriter,
    ) -> None:
        self.bits = bits
        self.offset = offset
        self.offsets = offsets
        self.keys = keys
        self.items = items

    @cython.cfunc
    @cython.exceptval(-1)
    def write_present(self, index: Size, output: JsonOutput) -> cython.int:
        item: Size
        start: Size = self.offsets[index]
        output.put(91 if self.keys is None else 123)
        for item in range(start, self.offsets[index + 1]):
            if item > start:
                output.put(44)
            if self.keys is not None:
                self.keys.write(item, output)
                output.put(58)
            self.items.write(item, output)
        return output.put(93 if self.keys is None else 125)


def write_documents(
    root: JsonWriter, header: bytes, offsets: cython.int[::1], capacity: Size
) -> bytearray:
    """Returns the documents, each after the header, and fills `offsets`.

    A row that is null has no document.
    """
    output: JsonOutput = JsonOutput(capacity)
    row: Size
    offsets[0] = 0
    for row in range(len(offsets) - 1):
        if not root.is_null(row):
            output.copy(_address_of(header), 0, len(header))
            root.write_present(row, output)
        offsets[row + 1] = output.size
    return output.finish()


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
def _hexadecimal(digit: cython.int) -> cython.uchar:
    return digit + (48 if digit < 10 else 87)
