# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
"""Reading the fields of a request and writing those of a response, without message objects.

The lanes of the hot path use them, so that a lane reads like the list of fields of its API. In C,
`data` is a pointer; in Python it is a buffer. Both are indexed alike.
"""

from __future__ import annotations

try:
    import cython

    if not cython.compiled:  # Cython's own stand-in for itself is many times slower than ours
        raise ImportError
except ImportError:
    from barnabas.wire.records import _uncompiled as cython

if cython.compiled:
    from cython.cimports.cpython.buffer import PyBUF_WRITE
    from cython.cimports.cpython.bytearray import (
        PyByteArray_AS_STRING,
        PyByteArray_GET_SIZE,
        PyByteArray_Resize,
    )
    from cython.cimports.cpython.bytes import PyBytes_FromStringAndSize
    from cython.cimports.cpython.mem import PyMem_Free, PyMem_Realloc
    from cython.cimports.cpython.memoryview import PyMemoryView_FromMemory
    from cython.cimports.cpython.unicode import PyUnicode_DecodeUTF8
    from cython.cimports.libc.string import memcpy

    Data = cython.typedef(cython.pointer[cython.const[cython.uchar]])
    Size = cython.typedef(cython.Py_ssize_t)
    Long = cython.typedef(cython.longlong)

_FIRST_BYTES = 4096


@cython.final
@cython.cclass
class Cursor:
    """Reads fields in their order. `_cursor.pxd` has its fields.

    A read beyond the end returns zero and sets `is_short`; nothing raises. A caller reads all it
    needs, and looks at `is_short` before it believes any of it.
    """

    def open(self, view, at):
        """Starts at a position of a frame, which is kept until the next one is opened."""
        self.view = view
        self.at = at
        self.end = len(view)
        self.is_short = False
        if cython.compiled:
            buffer: cython.const[cython.uchar][::1] = view
            self.data = cython.address(buffer[0])
        else:
            self.data = view

    def open_data(self, view, data, at, end):
        """Does the same for a caller that knows the address of the view's bytes."""
        self.view = view
        self.data = data
        self.at = at
        self.end = end
        self.is_short = False

    def close(self):
        """Forgets the frame, so that its memory can be reused; every read is short."""
        self.view = None
        self.at = self.end = 0
        self.data = cython.NULL if cython.compiled else b""

    def int8(self):
        return self.read(1)

    def int16(self):
        return self.read(2)

    def int32(self):
        return self.read(4)

    def int64(self):
        return self.read(8)

    def read(self, size):
        """Returns the signed big-endian integer of the next `size` bytes."""
        at: Size = self.at
        if self.end - at < size:
            return self.fail()
        self.at = at + size
        if not cython.compiled:
            return int.from_bytes(self.data[at : at + size], signed=True)
        data: Data = self.data
        value: cython.ulonglong = 0
        unused_bits: cython.int = 64 - 8 * size
        index: Size
        for index in range(at, at + size):
            value = (value << 8) | data[index]
        # To shift a negative number to the left is undefined in C.
        return cython.cast(cython.longlong, value << unused_bits) >> unused_bits

    def uvarint(self):
        value: Long = 0
        shift: cython.int = 0
        at: Size = self.at
        byte: cython.int
        while at < self.end and shift < 35:
            byte = self.data[at]
            at += 1
            value |= cython.cast(cython.longlong, byte & 0x7F) << shift
            if byte < 0x80:
                self.at = at
                return value
            shift += 7
        return self.fail()

    def skip(self, size):
        if size < 0 or self.end - self.at < size:
            self.fail()
        else:
            self.at += size

    def length(self, is_flexible):
        """Returns the length of an array, of bytes or of a string; -1 is null."""
        if is_flexible:
            return self.uvarint() - 1
        return self.read(4)

    def string(self, is_flexible):
        """Returns a string, or None if it is null; None and `is_short` if it is no UTF-8."""
        size: Long = self.uvarint() - 1 if is_flexible else self.read(2)
        at: Size = self.at
        if size < 0:
            return None
        self.skip(size)
        if self.is_short:
            return None
        try:
            if cython.compiled:
                return PyUnicode_DecodeUTF8(
                    cython.cast(cython.p_char, self.data) + at, size, cython.NULL
                )
            return str(self.data[at : at + size], "utf-8")
        except UnicodeDecodeError:
            self.fail()
            return None

    def uuid(self):
        """Returns the sixteen bytes of an id; None and `is_short` if there are fewer."""
        at: Size = self.at
        self.skip(16)
        if self.is_short:
            return None
        if cython.compiled:
            return PyBytes_FromStringAndSize(cython.cast(cython.p_char, self.data) + at, 16)
        return bytes(self.data[at : at + 16])

    def has_tags(self):
        """Reads how many tagged fields follow; returns whether there are any."""
        return self.uvarint() != 0

    def fail(self):
        self.is_short = True
        self.at = self.end
        return 0


@cython.final
@cython.cclass
class Sink:
    """Collects the bytes of one response. `_cursor.pxd` has its fields.

    `regions` has the file regions that are sent between these bytes, each with its position.
    """

    def __init__(self):
        self.regions = []
        self.position = 0
        self.capacity = 0
        if cython.compiled:
            self.data = cython.NULL
        else:
            self.data = bytearray()
        self.grow(_FIRST_BYTES)

    def __dealloc__(self):
        PyMem_Free(self.data)

    def clear(self):
        self.position = 0
        if self.regions:
            self.regions = []

    def reserve(self, size):
        """Makes space for `size` bytes that the caller fills; returns their position."""
        at: Size = self.position
        if at + size > self.capacity:
            self.grow(at + size)
        self.position = at + size
        return at

    def window(self, size):
        """Returns `size` reserved bytes to write to, before anything else is written."""
        at: Size = self.reserve(size)
        if cython.compiled:
            return PyMemoryView_FromMemory(
                cython.cast(cython.p_char, self.data) + at, size, PyBUF_WRITE
            )
        return memoryview(self.data)[at : at + size]

    def int8(self, value):
        self.put(self.reserve(1), value, 1)

    def int16(self, value):
        self.put(self.reserve(2), value, 2)

    def int32(self, value):
        self.put(self.reserve(4), value, 4)

    def int64(self, value):
        self.put(self.reserve(8), value, 8)

    def get_int32(self, at):
        """Returns an integer that was written there."""
        value: Long = 0
        index: Size
        for index in range(at, at + 4):
            value = (value << 8) | self.data[index]
        return value - ((value & 0x80000000) << 1)

    def patch_int32(self, at, value):
        self.put(at, value, 4)

    def patch_int64(self, at, value):
        self.put(at, value, 8)

    def put(self, at, value, size):
        """Writes a big-endian integer over bytes that were reserved."""
        index: Size
        for index in range(at, at + size):
            size -= 1
            self.data[index] = (value >> (size * 8)) & 0xFF

    def uvarint(self, value):
        while value > 0x7F:
            self.data[self.reserve(1)] = value & 0x7F | 0x80
            value >>= 7
        self.data[self.reserve(1)] = value

    def length(self, size, is_flexible):
        """Writes the length of an array or of bytes; -1 is null."""
        if is_flexible:
            self.uvarint(size + 1)
        else:
            self.int32(size)

    def string(self, text, is_flexible):
        """Writes a string, or null if it is None."""
        encoded: bytes = b"" if text is None else text.encode()
        size: Size = -1 if text is None else len(encoded)
        if is_flexible:
            self.uvarint(size + 1)
        else:
            self.int16(size)
        self.raw(encoded)

    def raw(self, content):
        """Writes bytes as they are."""
        size: Size = len(content)
        at: Size = self.reserve(size)
        if cython.compiled:
            source: cython.const[cython.uchar][::1]
            if size:
                source = content
                memcpy(self.data + at, cython.address(source[0]), size)
        else:
            self.data[at : at + size] = content

    def region(self, region):
        """Adds a file region behind the bytes so far."""
        self.regions.append((self.position, region))

    def append_to(self, out):
        """Appends the bytes and the regions to the bytes of an outgoing message."""
        start: Size = len(out)
        if cython.compiled:
            start = PyByteArray_GET_SIZE(out)
            PyByteArray_Resize(out, start + self.position)
            memcpy(PyByteArray_AS_STRING(out) + start, self.data, self.position)
        else:
            out += memoryview(self.data)[: self.position]
        for position, region in self.regions:
            out.regions.append((start + position, region))

    def grow(self, least):
        capacity: Size = max(2 * self.capacity, least)
        if cython.compiled:
            data: cython.pointer[cython.uchar] = cython.cast(
                cython.pointer[cython.uchar], PyMem_Realloc(self.data, capacity)
            )
            if data == cython.NULL:
                raise MemoryError
            self.data = data
        else:
            self.data += bytes(capacity - self.capacity)
        self.capacity = capacity
