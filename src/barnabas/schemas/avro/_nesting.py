# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
"""Checks how deeply the records of an Avro payload are nested, before fastavro reads it.

fastavro follows a record within itself on the C stack and has no limit, so a hostile payload would
end the process. The check makes no values. It is compiled with C types, or runs as Python.
"""

from __future__ import annotations

from barnabas.schemas.avro.model import AvroPrimitive, AvroType, inner_types

try:
    import cython

    if not cython.compiled:  # Cython's own stand-in for itself is many times slower than ours
        raise ImportError
except ImportError:
    from barnabas.wire.records import _uncompiled as cython

COMPILED: bool = cython.compiled

MAX_EMPTY_ITEMS = cython.declare(cython.Py_ssize_t, 1024)
"""Items of an array that take no bytes: the size of the payload does not limit them."""
MAX_DEPTH = cython.declare(cython.Py_ssize_t, 1000 if COMPILED else 100)
"""Records within each other, as many as any caller's stack has space for."""
_FIXED_SIZES = {"null": 0, "boolean": 1, "float": 4, "double": 8}
_MAP_KEY = AvroPrimitive("string")


def is_recursive(schema: AvroType) -> bool:
    """Returns whether a record contains itself. If none does, the schema limits the depth."""
    return _is_recursive(schema, set(), set())


def find_nesting_fault(schema: AvroType, payload: bytes) -> str:
    """Returns why the payload must not be read, or "". fastavro reports all other faults."""
    walk: _Walk = _Walk(payload)
    walk.skip(schema)
    return walk.fault


@cython.final
@cython.cclass
class _Walk:
    fault: str
    _payload: bytes
    _at: cython.Py_ssize_t
    _end: cython.Py_ssize_t
    _depth: cython.Py_ssize_t

    def __init__(self, payload: bytes) -> None:
        self.fault = ""
        self._payload = payload
        self._at = 0
        self._end = len(payload)
        self._depth = 0

    @cython.cfunc
    def skip(self, schema: object) -> cython.bint:
        """Steps over one value. Returns False where the payload cannot be followed further."""
        number: cython.longlong
        kind: str = schema.kind
        if kind == "record":
            return self._skip_record(schema)
        if kind == "union":
            number = self._read_long()
            if number < 0 or number >= len(schema.branches):
                return False
            return self.skip(schema.branches[number])
        if kind == "array":
            return self._skip_blocks(None, schema.items)
        if kind == "map":
            return self._skip_blocks(_MAP_KEY, schema.values)
        if kind in ("int", "long", "enum"):
            self._read_long()
            return self._at <= self._end
        if kind in ("string", "bytes"):
            number = self._read_long()
        else:
            number = schema.size if kind == "fixed" else _FIXED_SIZES[kind]
        if number < 0 or number > self._end - self._at:
            return False
        self._at += number
        return True

    @cython.cfunc
    def _skip_record(self, record: object) -> cython.bint:
        if self._depth == MAX_DEPTH:
            self.fault = "a record is too often within itself"
            return False
        self._depth += 1
        for field in record.fields:
            if not self.skip(field.type):
                return False
        self._depth -= 1
        return True

    @cython.cfunc
    def _skip_blocks(self, key: object, item: object) -> cython.bint:
        """Steps over an array or map: blocks of items, each after its count, and a zero."""
        count: cython.longlong
        start: cython.Py_ssize_t
        while True:
            count = self._read_long()
            if count < 0:
                count = -count
                self._read_long()  # the block's size in bytes
            if count == 0 or self._at > self._end:
                return self._at <= self._end
            while count > 0:
                start = self._at
                if (key is not None and not self.skip(key)) or not self.skip(item):
                    return False
                if self._at == start:
                    if count > MAX_EMPTY_ITEMS:
                        self.fault = "an array has too many empty items"
                        return False
                    break
                count -= 1

    @cython.cfunc
    def _read_long(self) -> cython.longlong:
        """Reads a zigzag varint. Moves past the end if the payload ends within it."""
        value: cython.ulonglong = 0
        shift: cython.int = 0
        byte: cython.uchar
        while shift < 64 and self._at < self._end:
            byte = self._payload[self._at]
            self._at += 1
            value |= cython.cast(cython.ulonglong, byte & 0x7F) << shift
            if byte < 0x80:
                return cython.cast(cython.longlong, value >> 1) ^ -cython.cast(
                    cython.longlong, value & 1
                )
            shift += 7
        self._at = self._end + 1
        return 0


def _is_recursive(schema: AvroType, enclosing: set[AvroType], finished: set[AvroType]) -> bool:
    if schema in enclosing:
        return True
    if schema in finished:
        return False
    enclosing.add(schema)
    result = any(_is_recursive(inner, enclosing, finished) for inner in inner_types(schema))
    enclosing.discard(schema)
    finished.add(schema)
    return result
