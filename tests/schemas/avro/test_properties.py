"""Laws of Avro schemas on generated ones, with fastavro as the reference."""

import io
import json
from collections.abc import Callable
from contextlib import suppress

import fastavro
from fastavro.schema import to_parsing_canonical_form
from fastavro.utils import generate_many
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from barnabas.schemas import SchemaType, parse

PRIMITIVES = ["null", "boolean", "int", "long", "float", "double", "bytes", "string"]
SYMBOLS = ["A", "B", "C", "D"]
Draw = Callable[[st.SearchStrategy], object]


class Maker:
    """Draws a schema and one that has evolved from it. Each named type is defined once."""

    def __init__(self, draw: Draw) -> None:
        self._draw = draw
        self._names = 0

    def schema(self, depth: int = 3) -> object:
        kinds = ["primitive", "enum", "fixed"]
        kinds += ["array", "map", "union", "record", "record"] if depth else []
        match self._draw(st.sampled_from(kinds)):
            case "primitive":
                return self._draw(st.sampled_from(PRIMITIVES))
            case "array":
                return {"type": "array", "items": self.schema(depth - 1)}
            case "map":
                return {"type": "map", "values": self.schema(depth - 1)}
            case "enum":
                symbols = self._draw(st.lists(st.sampled_from(SYMBOLS), min_size=1, unique=True))
                return {"type": "enum", "name": self._name(), "symbols": symbols}
            case "fixed":
                size = self._draw(st.integers(1, 4))
                return {"type": "fixed", "name": self._name(), "size": size}
            case "union":
                return self._union([self.schema(depth - 1) for _ in range(self._count(1, 3))])
            case _:
                name = self._name()
                fields = [self._field(i, depth) for i in range(self._count(0, 3))]
                return {"type": "record", "name": name, "fields": fields}

    def evolved(self, schema: object) -> object:
        if self._chance(10):
            return self.schema(1)
        match schema:
            case str():
                return self._draw(st.sampled_from([schema, schema, schema, *PRIMITIVES]))
            case list():
                branches = [self.evolved(branch) for branch in schema if not self._chance(10)]
                return self._union(branches + [self.schema(1)] * self._chance(5))
            case {"type": "array"}:
                return {**schema, "items": self.evolved(schema["items"])}
            case {"type": "map"}:
                return {**schema, "values": self.evolved(schema["values"])}
            case {"type": "enum"}:
                symbols = self._draw(st.permutations(SYMBOLS)) if self._chance(3) else None
                return {**schema, "symbols": symbols or schema["symbols"]}
            case {"type": "record"}:
                fields = [
                    {**field, "type": self.evolved(field["type"])}
                    for field in schema["fields"]
                    if not self._chance(10)
                ]
                if self._chance(4):
                    fields.insert(0, {"name": "added", "type": ["null", "int"], "default": None})
                return {**schema, "fields": fields}
            case _:
                return schema

    def _field(self, index: int, depth: int) -> object:
        return {"name": f"f{index}", "type": self.schema(depth - 1)}

    def _union(self, branches: list[object]) -> object:
        """Draws one branch of each kind, and no nested union."""
        distinguishable = {
            branch if isinstance(branch, str) else branch["type"]: branch
            for branch in branches
            if not isinstance(branch, list)
        }
        return list(distinguishable.values()) or "null"

    def _name(self) -> str:
        self._names += 1
        return f"N{self._names}"

    def _count(self, least: int, most: int) -> int:
        return self._draw(st.integers(least, most))

    def _chance(self, one_in: int) -> bool:
        return self._draw(st.integers(1, one_in)) == one_in


@st.composite
def schemas(draw: Draw) -> object:
    return Maker(draw).schema()


@st.composite
def evolutions(draw: Draw) -> tuple[object, object]:
    maker = Maker(draw)
    written = maker.schema()
    return maker.evolved(written), written


slowly = settings(deadline=None, suppress_health_check=list(HealthCheck))


@slowly
@given(schemas())
def test_a_schema_reads_itself(schema: object) -> None:
    parsed = parse(SchemaType.AVRO, json.dumps(schema), {})
    again = parse(SchemaType.AVRO, parsed.text, {})
    assert parsed.find_incompatibilities(again) == again.find_incompatibilities(parsed) == []


@slowly
@given(schemas())
def test_written_texts_are_stable_and_equal_for_fastavro(schema: object) -> None:
    parsed = parse(SchemaType.AVRO, json.dumps(schema), {})
    canonical = to_parsing_canonical_form(schema)
    for text in (parsed.text, parsed.normalized):
        again = parse(SchemaType.AVRO, text, {})
        assert text in (again.text, again.normalized)
        assert to_parsing_canonical_form(json.loads(text)) == canonical


@slowly
@given(evolutions())
def test_fastavro_reads_data_of_compatible_schemas(pair: tuple[object, object]) -> None:
    reader, writer = pair
    reading, written = (parse(SchemaType.AVRO, json.dumps(item), {}) for item in pair)
    if reading.find_incompatibilities(written):
        return
    for datum in generate_many(writer, 5):
        encoded = io.BytesIO()
        fastavro.schemaless_writer(encoded, writer, datum)
        encoded.seek(0)
        # Avro reads bytes as a string, whatever they hold.
        with suppress(UnicodeDecodeError):
            fastavro.schemaless_reader(encoded, writer, reader)
