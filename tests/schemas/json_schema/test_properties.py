"""Laws of JSON schemas on generated ones; jsonschema decides which documents are valid."""

import json
from collections.abc import Callable

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft7Validator

from barnabas.schemas import SchemaType, parse

NAMES = ["a", "b", "x_c"]
SCALARS = [None, True, 0, 1, 7, 2.5, "", "a", "abc"]
Draw = Callable[[st.SearchStrategy], object]


class Maker:
    """Draws a schema, one that has evolved from it, and values that it may accept."""

    def __init__(self, draw: Draw) -> None:
        self._draw = draw

    def schema(self, depth: int = 3) -> object:
        kinds = ["string", "number", "integer", "null", "boolean", "enum", "const", "any"]
        kinds += ["array", "tuple", "object", "object", "anyOf", "types"] if depth else []
        match self._of(kinds):
            case "string":
                return {"type": "string", **self._limits("minLength", "maxLength")}
            case "number" | "integer" as kind:
                multiple = {"multipleOf": self._of([1, 2, 0.5])} if self._chance(4) else {}
                return {"type": kind, **self._limits("minimum", "maximum"), **multiple}
            case "null" | "boolean" as kind:
                return {"type": kind}
            case "enum":
                values = self._draw(st.lists(st.sampled_from(SCALARS[3:]), min_size=1, max_size=4))
                return {"enum": values}
            case "const":
                return {"const": self._of(SCALARS)}
            case "any":
                return self._of([True, False, {}])
            case "array":
                limits = self._limits("minItems", "maxItems")
                return {"type": "array", "items": self.schema(depth - 1), **limits}
            case "tuple":
                items = [self.schema(depth - 1) for _ in range(self._count(1, 2))]
                return {"type": "array", "items": items, **self._rest("additionalItems", depth)}
            case "anyOf":
                return {"anyOf": [self.schema(depth - 1) for _ in range(self._count(1, 3))]}
            case "types":
                return {"type": self._draw(st.permutations(["null", "string", "integer"]))[:2]}
            case _:
                return self._object(depth)

    def evolved(self, schema: object, depth: int = 3) -> object:
        if self._chance(10) or not isinstance(schema, dict):
            return self.schema(1) if self._chance(3) else schema
        changed = {**schema}
        for keyword, value in schema.items():
            match keyword:
                case "minLength" | "maxLength" | "minimum" | "maximum" | "minItems" | "maxItems":
                    changed[keyword] = value + self._of([0, 0, 1, -1])
                case "items" | "anyOf" if isinstance(value, list):
                    kept = [self.evolved(item) for item in value if not self._chance(5)]
                    changed[keyword] = kept + [self.schema(1)] * self._chance(5) or [True]
                case "items" | "additionalItems" | "additionalProperties":
                    changed[keyword] = self.evolved(value)
                case "properties" | "patternProperties":
                    kept = {n: self.evolved(v) for n, v in value.items() if not self._chance(5)}
                    added = {self._of(NAMES): self.schema(1)} if self._chance(5) else {}
                    changed[keyword] = {**kept, **(added if keyword == "properties" else {})}
                case "required":
                    changed[keyword] = self._draw(st.lists(st.sampled_from(NAMES), unique=True))
        if changed and self._chance(5):
            changed.pop(self._of(list(changed)))
        return _sound({key: max(0, v) if _is_count(key) else v for key, v in changed.items()})

    def value(self, schema: object) -> object:
        match schema:
            case {"const": value}:
                return value
            case {"enum": values}:
                return self._of(values)
            case {"anyOf": parts}:
                return self.value(self._of(parts))
            case {"type": "array"}:
                items = schema.get("items", True)
                if isinstance(items, list):
                    rest = schema.get("additionalItems", True)
                    return [self.value(item) for item in [*items, rest][: self._count(0, 3)]]
                return [self.value(items) for _ in range(self._count(0, 3))]
            case {"type": "object"}:
                names = self._draw(st.lists(st.sampled_from(NAMES), unique=True))
                return {name: self.value(_property(schema, name)) for name in names}
            case _:
                return self._of(SCALARS)

    def _object(self, depth: int) -> object:
        names = self._draw(st.lists(st.sampled_from(NAMES), unique=True))
        schema = {
            "type": "object",
            "properties": {name: self.schema(depth - 1) for name in names},
            "required": [name for name in names if self._chance(3)],
            **self._rest("additionalProperties", depth),
        }
        if self._chance(5):
            schema["patternProperties"] = {"^x_": self.schema(depth - 1)}
        return schema

    def _rest(self, keyword: str, depth: int) -> dict[str, object]:
        return self._of([{}, {keyword: False}, {keyword: self.schema(depth - 1)}])

    def _limits(self, least: str, most: str) -> dict[str, object]:
        limits = {least: self._count(0, 2), most: self._count(2, 4)}
        return {keyword: limits[keyword] for keyword in limits if self._chance(3)}

    def _of(self, choices: list) -> object:
        return self._draw(st.sampled_from(choices))

    def _count(self, least: int, most: int) -> int:
        return self._draw(st.integers(least, most))

    def _chance(self, one_in: int) -> bool:
        return self._draw(st.integers(1, one_in)) == one_in


def _is_count(keyword: str) -> bool:
    return keyword in ("minLength", "maxLength", "minItems", "maxItems")


def _sound(schema: dict) -> dict:
    """Only described properties may be required: the comparison ignores others."""
    described = schema.get("properties", {})
    if "required" in schema:
        schema["required"] = [name for name in schema["required"] if name in described]
    return schema


def _property(schema: dict, name: str) -> object:
    return schema.get("properties", {}).get(name, schema.get("additionalProperties", True))


@st.composite
def evolutions(draw: Draw) -> tuple[object, object, list[object]]:
    maker = Maker(draw)
    written = maker.schema()
    return maker.evolved(written), written, [maker.value(written) for _ in range(3)]


slowly = settings(deadline=None, suppress_health_check=list(HealthCheck))


@slowly
@given(evolutions())
def test_a_schema_reads_itself(made: tuple[object, object, list[object]]) -> None:
    for schema in made[:2]:
        parsed = parse(SchemaType.JSON, json.dumps(schema), {})
        again = parse(SchemaType.JSON, parsed.normalized, {})
        assert parsed.find_incompatibilities(again) == again.find_incompatibilities(parsed) == []
        assert again.normalized == parsed.normalized


@slowly
@given(evolutions())
def test_documents_of_a_compatible_writer_are_accepted_by_the_reader(
    made: tuple[object, object, list[object]],
) -> None:
    reader, writer, values = made
    reading, written = (parse(SchemaType.JSON, json.dumps(item), {}) for item in (reader, writer))
    if reading.find_incompatibilities(written):
        return
    for value in values:
        if Draft7Validator(writer).is_valid(value):
            assert Draft7Validator(reader).is_valid(value)
