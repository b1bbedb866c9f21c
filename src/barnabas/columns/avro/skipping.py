"""Steps over what was written and nobody reads: of what the reader leaves out, and of whole values.

Types that contain themselves have no columns, but they can be stepped over, as deep as they may be.
"""

from __future__ import annotations

from barnabas.columns.avro import _decode
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


class Skipper:
    """Makes the steps over values of one schema; over those of a record once."""

    def __init__(self) -> None:
        self._records: dict[AvroType, _decode.Step] = {}
        self._recursive: dict[AvroType, _decode.Again] = {}
        self._unfinished: set[AvroType] = set()
        self._least: dict[AvroType, int] = {}

    def step(self, schema: AvroType) -> _decode.Step:
        match schema:
            case AvroPrimitive(kind):
                return _primitive(kind)
            case AvroFixed(size=size):
                return _decode.SkipFixed(size)
            case AvroEnum():
                return _decode.SkipVarint()
            case AvroUnion(branches):
                return _decode.Choice([self.step(branch) for branch in branches])
            case AvroRecord():
                return self._record(schema)
            case AvroArray(items):
                least = min(1, self.least_bytes(items))
                return _decode.Items(None, None, [self.step(items)], least)
            case AvroMap(values):
                return _decode.Items(None, None, [_decode.SkipBytes(), self.step(values)], 1)

    def least_bytes(self, schema: AvroType) -> int:
        """That any value of the shape takes: 0 where it may take none."""
        match schema:
            case AvroPrimitive("null"):
                return 0
            case AvroFixed(size=size):
                return size
            case AvroRecord(fields=fields):
                if schema not in self._least:
                    self._least[schema] = 1  # of a record within itself
                    self._least[schema] = sum(self.least_bytes(field.type) for field in fields)
                return self._least[schema]
        return 1

    def _record(self, record: AvroRecord) -> _decode.Step:
        if record in self._records:
            return self._records[record]
        if record in self._unfinished:
            return self._recursive.setdefault(record, _decode.Again())
        self._unfinished.add(record)
        steps = [self.step(field.type) for field in record.fields]
        step = _decode.RecordFields(None, steps, [field.name for field in record.fields])
        if (recursive := self._recursive.get(record)) is not None:
            recursive.begin_at(step)
        self._records[record] = recursive or step
        return self._records[record]


def _primitive(kind: str) -> _decode.Step:
    match kind:
        case "bytes" | "string":
            return _decode.SkipBytes()
        case "int" | "long":
            return _decode.SkipVarint()
    return _decode.SkipFixed(_SIZES[kind])


_SIZES = {"null": 0, "boolean": 1, "float": 4, "double": 8}
