"""Steps over what was written and nobody reads: of what the reader leaves out, and of whole values.

Types that contain themselves have no columns, but they can be stepped over, as deep as they may be.
"""

from __future__ import annotations

from collections.abc import Mapping

from barnabas.columns.avro import _decode
from barnabas.columns.avro.shapes import (
    Again,
    Array,
    Enum,
    Fixed,
    Map,
    Primitive,
    Record,
    Shape,
    Union,
    parse_written,
)


def check(text: str, references: Mapping[str, str]) -> _decode.Check | None:
    """What walks over payloads of a schema; None where its types say how deep they can be."""
    written = parse_written(text, references)
    return _decode.Check(Skipper(written.records).step(written.shape)) if written.records else None


class Skipper:
    """Makes the steps over values of one schema; over those of a record once."""

    def __init__(self, records: Mapping[str, Shape]) -> None:
        """`records` are those within themselves."""
        self._within_themselves = records
        self._again: dict[str, _decode.Again] = {}
        self._records: dict[str, _decode.Step] = {}
        self._least: dict[str, int] = {}

    def step(self, shape: Shape) -> _decode.Step:
        match shape:
            case Primitive(kind):
                return _primitive(kind)
            case Fixed(_, size):
                return _decode.SkipFixed(size)
            case Enum():
                return _decode.SkipVarint()
            case Union(members):
                return _decode.Choice([self.step(member) for member in members])
            case Record(name):
                if name not in self._records:
                    self._records[name] = self._record(shape)
                return self._records[name]
            case Array(items):
                least = min(1, self.least_bytes(items))
                return _decode.Items(None, None, [self.step(items)], least)
            case Map(values):
                return _decode.Items(None, None, [_decode.SkipBytes(), self.step(values)], 1)
            case Again(name):
                return self._once_more(name)

    def least_bytes(self, shape: Shape) -> int:
        """That any value of the shape takes: 0 where it may take none."""
        match shape:
            case Primitive("null"):
                return 0
            case Fixed(_, size):
                return size
            case Record(name, fields):
                if name not in self._least:
                    self._least[name] = sum(self.least_bytes(field.shape) for field in fields)
                return self._least[name]
        return 1

    def _record(self, record: Record) -> _decode.Step:
        steps = [self.step(field.shape) for field in record.fields]
        return _decode.RecordFields(None, steps, [field.name for field in record.fields])

    def _once_more(self, name: str) -> _decode.Step:
        again = self._again.get(name)
        if again is None:
            again = self._again[name] = _decode.Again()
            again.begin_at(self.step(self._within_themselves[name]))
        return again


def _primitive(kind: str) -> _decode.Step:
    match kind:
        case "bytes" | "string":
            return _decode.SkipBytes()
        case "int" | "long":
            return _decode.SkipVarint()
    return _decode.SkipFixed(_SIZES[kind])


_SIZES = {"null": 0, "boolean": 1, "float": 4, "double": 8}
