"""Readers that skip values which the reader's schema does not have.

Types that contain themselves have no columns, but they can be skipped to any depth.
"""

from __future__ import annotations

from barnabas.columns.avro import _decoder
from barnabas.schemas.avro.model import (
    AvroArray,
    AvroEnum,
    AvroFixed,
    AvroMap,
    AvroPrimitive,
    AvroRecord,
    AvroType,
    AvroUnion,
)


class AvroSkipper:
    """Creates the readers that skip values of a schema; one for each record type."""

    def __init__(self) -> None:
        self._records: dict[AvroType, _decoder.AvroReader] = {}
        self._recursive: dict[AvroType, _decoder.AvroRecursiveReader] = {}
        self._unfinished: set[AvroType] = set()
        self._min_bytes: dict[AvroType, int] = {}

    def reader(self, schema: AvroType) -> _decoder.AvroReader:
        match schema:
            case AvroPrimitive(kind):
                return _primitive(kind)
            case AvroFixed(size=size):
                return _decoder.AvroFixedSkipper(size)
            case AvroEnum():
                return _decoder.AvroVarintSkipper()
            case AvroUnion(branches):
                return _decoder.AvroUnionReader([self.reader(branch) for branch in branches])
            case AvroRecord():
                return self._record(schema)
            case AvroArray(items):
                min_bytes = min(1, self.min_bytes(items))
                return _decoder.AvroArrayReader(None, None, [self.reader(items)], min_bytes)
            case AvroMap(values):
                return _decoder.AvroArrayReader(
                    None, None, [_decoder.AvroBytesSkipper(), self.reader(values)], 1
                )

    def min_bytes(self, schema: AvroType) -> int:
        """Returns the minimum size of a value of the schema."""
        match schema:
            case AvroPrimitive("null"):
                return 0
            case AvroFixed(size=size):
                return size
            case AvroRecord(fields=fields):
                if schema not in self._min_bytes:
                    self._min_bytes[schema] = 1  # for a record within itself
                    self._min_bytes[schema] = sum(self.min_bytes(field.type) for field in fields)
                return self._min_bytes[schema]
        return 1

    def _record(self, record: AvroRecord) -> _decoder.AvroReader:
        if record in self._records:
            return self._records[record]
        if record in self._unfinished:
            return self._recursive.setdefault(record, _decoder.AvroRecursiveReader())
        self._unfinished.add(record)
        readers = [self.reader(field.type) for field in record.fields]
        reader = _decoder.AvroRecordReader(None, readers, [field.name for field in record.fields])
        if (recursive := self._recursive.get(record)) is not None:
            recursive.set_inner(reader)
        self._records[record] = recursive or reader
        return self._records[record]


def _primitive(kind: str) -> _decoder.AvroReader:
    match kind:
        case "bytes" | "string":
            return _decoder.AvroBytesSkipper()
        case "int" | "long":
            return _decoder.AvroVarintSkipper()
    return _decoder.AvroFixedSkipper(_SIZES[kind])


_SIZES = {"null": 0, "boolean": 1, "float": 4, "double": 8}
