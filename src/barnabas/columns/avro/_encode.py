# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
"""Arrow's buffers into Avro's bytes: compiled with C types, or run as the Python it is.

A schema and the columns of a batch become a tree of nodes. Each writes the value at an index of
its column; no object is made for a record. The columns were checked to be as long as they claim
when their nodes were made.

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


class UnfitValueError(Exception):
    """A value that the schema has no place for: its index in its column, and why."""


@cython.final
@cython.cclass
class Output:
    """The payloads, one after the other, while they are written."""

    room: bytearray
    octets: Octets
    size: Size
    capacity: Size

    def __init__(self, capacity: Size) -> None:
        self.size = 0
        self.capacity = 0
        self.room = bytearray()
        self._enlarge(max(capacity, 256))

    @cython.cfunc
    @cython.exceptval(-1)
    def _enlarge(self, capacity: Size) -> cython.int:
        larger = bytearray(capacity)
        larger[: self.size] = memoryview(self.room)[: self.size]
        self.room = larger
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
class Node:
    @cython.cfunc
    @cython.exceptval(-1)
    def write(self, index: Size, output: Output) -> cython.int:
        raise NotImplementedError


@cython.cclass
class Nothing(Node):
    @cython.cfunc
    @cython.exceptval(-1)
    def write(self, index: Size, output: Output) -> cython.int:
        return 0


@cython.cclass
class Prefixed(Node):
    """Bytes that are the same each time, and a value: which member of a union it is."""

    prefix: cython.const[cython.uchar][::1]
    inner: Node

    def __init__(self, prefix: bytes, inner: Node) -> None:
        self.prefix = prefix
        self.inner = inner

    @cython.cfunc
    @cython.exceptval(-1)
    def write(self, index: Size, output: Output) -> cython.int:
        output.copy(_address(self.prefix), 0, len(self.prefix))
        return self.inner.write(index, output)


@cython.cclass
class Nullable(Node):
    """One node for the values that are there, another for nulls."""

    bits: cython.const[cython.uchar][::1]
    offset: Size
    present: Node
    absent: Node

    def __init__(
        self, bits: cython.const[cython.uchar][::1], offset: Size, present: Node, absent: Node
    ) -> None:
        self.bits = bits
        self.offset = offset
        self.present = present
        self.absent = absent

    @cython.cfunc
    @cython.exceptval(-1)
    def write(self, index: Size, output: Output) -> cython.int:
        at: Size = self.offset + index
        if (self.bits[at >> 3] >> (at & 7)) & 1:
            return self.present.write(index, output)
        return self.absent.write(index, output)


@cython.cclass
class Unfit(Node):
    """Where a value is that cannot be written."""

    reason: str

    def __init__(self, reason: str) -> None:
        self.reason = reason

    @cython.cfunc
    @cython.exceptval(-1)
    def write(self, index: Size, output: Output) -> cython.int:
        raise UnfitValueError(self.reason)


@cython.cclass
class Boolean(Node):
    bits: cython.const[cython.uchar][::1]
    offset: Size

    def __init__(self, bits: cython.const[cython.uchar][::1], offset: Size) -> None:
        self.bits = bits
        self.offset = offset

    @cython.cfunc
    @cython.exceptval(-1)
    def write(self, index: Size, output: Output) -> cython.int:
        at: Size = self.offset + index
        output.reserve(1)
        output.octets[output.size] = (self.bits[at >> 3] >> (at & 7)) & 1
        output.size += 1
        return 0


@cython.cclass
class Int(Node):
    values: cython.const[cython.int][::1]

    def __init__(self, values: cython.const[cython.int][::1]) -> None:
        self.values = values

    @cython.cfunc
    @cython.exceptval(-1)
    def write(self, index: Size, output: Output) -> cython.int:
        return output.varint(self.values[index])


@cython.cclass
class Long64(Node):
    values: cython.const[cython.longlong][::1]

    def __init__(self, values: cython.const[cython.longlong][::1]) -> None:
        self.values = values

    @cython.cfunc
    @cython.exceptval(-1)
    def write(self, index: Size, output: Output) -> cython.int:
        return output.varint(self.values[index])


@cython.cclass
class Floating(Node):
    """Floats and doubles: Arrow's bytes are Avro's."""

    content: cython.const[cython.uchar][::1]
    width: Size

    def __init__(self, content: cython.const[cython.uchar][::1], width: Size) -> None:
        self.content = content
        self.width = width

    @cython.cfunc
    @cython.exceptval(-1)
    def write(self, index: Size, output: Output) -> cython.int:
        return output.copy(_address(self.content), index * self.width, self.width)


@cython.cclass
class Bytes(Node):
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
    def write(self, index: Size, output: Output) -> cython.int:
        start: Size = self.offsets[index]
        size: Size = self.offsets[index + 1] - start
        output.varint(size)
        return output.copy(_address(self.content), start, size)


@cython.cclass
class FixedBytes(Node):
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
    def write(self, index: Size, output: Output) -> cython.int:
        start: Size = self.offsets[index]
        size: Size = self.offsets[index + 1] - start
        if size != self.size:
            raise UnfitValueError(f"it has {size} bytes, and the schema wants {self.size}")
        return output.copy(_address(self.content), start, size)


@cython.cclass
class Decimal(Node):
    """Sixteen bytes, little-endian, to as few as will do, or a given number, big-endian."""

    content: cython.const[cython.uchar][::1]
    size: Size

    def __init__(self, content: cython.const[cython.uchar][::1], size: Size) -> None:
        """A negative size: as few as will do, and their number before them."""
        self.content = content
        self.size = size

    @cython.cfunc
    @cython.exceptval(-1)
    def write(self, index: Size, output: Output) -> cython.int:
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
            raise UnfitValueError(f"it takes {needed} bytes, and the schema has {size}")
        output.reserve(size)
        place: Size
        for place in range(size):
            output.octets[output.size + size - 1 - place] = (
                self.content[start + place] if place < 16 else sign
            )
        output.size += size
        return 0


@cython.cclass
class Record(Node):
    nodes: list
    names: list

    def __init__(self, nodes: list, names: list) -> None:
        self.nodes = nodes
        self.names = names

    @cython.cfunc
    @cython.exceptval(-1)
    def write(self, index: Size, output: Output) -> cython.int:
        place: Size = 0
        node: Node
        try:
            for place in range(len(self.nodes)):
                node = cython.cast(Node, self.nodes[place])
                node.write(index, output)
        except UnfitValueError as unfit:
            raise UnfitValueError(*unfit.args, self.names[place]) from None
        return 0


@cython.cclass
class Items(Node):
    """The items of a list, or the entries of a map: one block, and its end."""

    offsets: cython.const[cython.int][::1]
    nodes: list

    def __init__(self, offsets: cython.const[cython.int][::1], nodes: list) -> None:
        self.offsets = offsets
        self.nodes = nodes

    @cython.cfunc
    @cython.exceptval(-1)
    def write(self, index: Size, output: Output) -> cython.int:
        item: Size
        place: Size
        node: Node
        start: Size = self.offsets[index]
        end: Size = self.offsets[index + 1]
        if end > start:
            output.varint(end - start)
            for item in range(start, end):
                for place in range(len(self.nodes)):
                    node = cython.cast(Node, self.nodes[place])
                    node.write(item, output)
        return output.varint(0)


@cython.cclass
class Choice(Node):
    """A struct with a field for each member of a union: the first that is set is written."""

    bits: list  # of validity, as nodes
    nodes: list

    def __init__(self, present: list, nodes: list) -> None:
        """`present` has, for each node, a column of int: 1 where the member is set."""
        self.bits = present
        self.nodes = nodes

    @cython.cfunc
    @cython.exceptval(-1)
    def write(self, index: Size, output: Output) -> cython.int:
        place: Size
        node: Node
        present: Int
        for place in range(len(self.nodes)):
            present = cython.cast(Int, self.bits[place])
            if present.values[index]:
                node = cython.cast(Node, self.nodes[place])
                return node.write(index, output)
        raise UnfitValueError("no member of the union is set")


def run(
    root: Node,
    bits: cython.const[cython.uchar][::1],
    first: Size,
    header: cython.const[cython.uchar][::1],
    offsets: cython.int[::1],
    capacity: Size,
) -> bytearray:
    """The payloads, each after the header; fills where they begin, and the last one ends.

    A row is left out where its bit is not set; without bits none is.
    """
    output: Output = Output(capacity)
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
    except UnfitValueError as unfit:
        reason, *names = unfit.args
        where = f" in field {'.'.join(reversed(names))!r}" if names else ""
        raise ValueError(f"Row {row} cannot be written{where}: {reason}.") from None
    return output.room


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
