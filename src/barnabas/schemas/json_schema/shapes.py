"""Shapes: the keywords of a JSON schema, sorted by the kind of value they apply to.

One schema can have keywords for strings, numbers, objects and arrays. To compare two schemas, each
becomes one shape, or a combination of shapes of which all (any, one) must match. A shape holds
subschemas unresolved, because they may lead back to it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, cast

from barnabas.schemas import json_text
from barnabas.schemas.json_schema.documents import REF_ONLY_DRAFTS, Node, Subschema

Limits = dict[str, float]
"""Limits by keyword."""


@dataclass(slots=True, frozen=True, eq=False)
class AnyShape:
    pass


@dataclass(slots=True, frozen=True, eq=False)
class NeverShape:
    pass


@dataclass(slots=True, frozen=True, eq=False)
class ScalarShape:
    """A boolean or null."""

    kind: str


@dataclass(slots=True, frozen=True, eq=False)
class StringShape:
    limits: Limits
    pattern: str | None


@dataclass(slots=True, frozen=True, eq=False)
class NumberShape:
    limits: Limits
    multiple_of: float | None
    integer: bool


@dataclass(slots=True, frozen=True, eq=False)
class EnumShape:
    values: frozenset[str]
    """As canonical texts, which are equal for equal values."""


@dataclass(slots=True, frozen=True, eq=False)
class ConstShape:
    value: str


@dataclass(slots=True, frozen=True, eq=False)
class NotShape:
    of: Subschema


@dataclass(slots=True, frozen=True, eq=False)
class ConditionalShape:
    pass


@dataclass(slots=True, frozen=True, eq=False)
class ArrayShape:
    limits: Limits
    unique: bool
    every: Subschema | None
    """The schema of all items, if there is one for all."""
    first: tuple[Subschema, ...]
    """The schemas of the first items."""
    additional: Subschema | None
    """The schema of the items after those; None if they may be anything."""
    unevaluated: Subschema | None


@dataclass(slots=True, frozen=True, eq=False)
class ObjectShape:
    limits: Limits
    properties: dict[str, Subschema]
    patterns: dict[str, Subschema]
    required: frozenset[str]
    additional: Subschema | None
    unevaluated: Subschema | None
    needed: dict[str, frozenset[str]]
    """By property: the properties that it requires."""
    implied: dict[str, Subschema]
    """By property: the schema of the whole object if the property is present."""


@dataclass(slots=True, frozen=True, eq=False)
class CombinedShape:
    criterion: str
    """allOf, anyOf or oneOf."""
    parts: tuple["Subschema | Shape", ...]


Shape = (
    AnyShape
    | NeverShape
    | ScalarShape
    | StringShape
    | NumberShape
    | EnumShape
    | ConstShape
    | NotShape
    | ConditionalShape
    | ArrayShape
    | ObjectShape
    | CombinedShape
)

ANY_SHAPE: Final = AnyShape()
NEVER_SHAPE: Final = NeverShape()


@dataclass(slots=True, frozen=True)
class ShapeCache:
    """Returns the same shape each time for one subschema: comparisons identify shapes by `id()`."""

    _of: dict[int, tuple[Subschema, Shape]] = field(default_factory=dict)

    def shape_of(self, part: Subschema | Shape) -> Shape:
        if not isinstance(part, Subschema):
            return part
        if isinstance(part.node, bool):
            return ANY_SHAPE if part.node else NEVER_SHAPE
        cached = self._of.get(id(part.node))
        if cached is None:
            cached = self._of[id(part.node)] = part, self._shape(part)
        return cached[1]

    def _shape(self, schema: Subschema) -> Shape:
        target = schema.target()
        if target is not None and schema.is_alias:
            return self.shape_of(target)
        parts = tuple(_parts(schema))
        if target is not None:
            return CombinedShape("allOf", (target, *parts))
        match parts:
            case ():
                return ANY_SHAPE
            case (only,):
                return only
            case _:
                return CombinedShape("allOf", parts)


def canonical(value: object) -> str:
    """Returns a text that is the same for equal JSON values."""
    return json_text.write(json_text.ordered(_whole(value)))


def _whole(value: object) -> object:
    match value:
        case float() if value.is_integer():
            return int(value)
        case list():
            return [_whole(item) for item in value]
        case dict():
            return {key: _whole(member) for key, member in value.items()}
        case _:
            return value


_LIMITS: Final = {
    "string": ("maxLength", "minLength"),
    "number": ("maximum", "minimum", "exclusiveMaximum", "exclusiveMinimum"),
    "object": ("maxProperties", "minProperties"),
    "array": ("maxItems", "minItems", "maxContains", "minContains"),
}
_KEYWORDS: Final = {
    "array": (
        *_LIMITS["array"],
        *("items", "additionalItems", "uniqueItems", "contains", "prefixItems", "unevaluatedItems"),
    ),
    "object": (
        *_LIMITS["object"],
        *("properties", "required", "patternProperties", "additionalProperties", "propertyNames"),
        *("dependencies", "dependentRequired", "dependentSchemas", "unevaluatedProperties"),
    ),
    "number": (*_LIMITS["number"], "multipleOf"),
    "string": (*_LIMITS["string"], "pattern"),
}
_COMBINATIONS: Final = ("allOf", "anyOf", "oneOf")
_CONDITIONS: Final = ("if", "then", "else")


def _parts(schema: Subschema) -> Iterator[Shape]:
    node = cast("Mapping[str, Any]", schema.node)
    if "enum" in node:
        yield EnumShape(frozenset(canonical(value) for value in _items(node, "enum")))
    for criterion in _COMBINATIONS:
        if criterion in node:
            yield CombinedShape(
                criterion, tuple(_subschema(item, schema) for item in _items(node, criterion))
            )
    if "not" in node:
        yield NotShape(_subschema(node["not"], schema))
    if "const" in node:
        yield ConstShape(canonical(node["const"]))
    type_ = node.get("type")
    if isinstance(type_, str):
        yield _typed(type_, schema)
    elif type_ is not None:
        kinds = tuple(_typed(str(kind), schema) for kind in _items(node, "type"))
        yield CombinedShape("anyOf", kinds)
    for kind, keywords in _KEYWORDS.items():
        if kind not in _covered(node) and any(keyword in node for keyword in keywords):
            yield _typed(kind, schema)
    if any(keyword in node for keyword in _CONDITIONS):
        yield ConditionalShape()


def _covered(node: Mapping[str, Any]) -> set[str]:
    named = {str(kind) for kind in (node.get("type"), *_items(node, "type"))}
    return named | ({"number"} if "integer" in named else set())


def _typed(kind: str, schema: Subschema) -> Shape:
    node = cast("Mapping[str, Any]", schema.node)
    match kind:
        case "string":
            pattern = node.get("pattern")
            return StringShape(_limits(node, "string"), None if pattern is None else str(pattern))
        case "number" | "integer":
            multiple = node.get("multipleOf")
            divisor = multiple if isinstance(multiple, int | float) and multiple > 0 else None
            return NumberShape(_number_limits(node), divisor, kind == "integer")
        case "object":
            return _object(node, schema)
        case "array":
            return _array(node, schema)
        case _:
            return ScalarShape(kind)


def _limits(node: Mapping[str, Any], kind: str) -> Limits:
    values = {keyword: node.get(keyword) for keyword in _LIMITS[kind]}
    return {keyword: bound for keyword, bound in values.items() if isinstance(bound, int | float)}


def _number_limits(node: Mapping[str, Any]) -> Limits:
    """In draft 4, `exclusiveMaximum` is a boolean about `maximum`."""
    limits = _limits(node, "number")
    for keyword, bound in (("exclusiveMaximum", "maximum"), ("exclusiveMinimum", "minimum")):
        if isinstance(limits.get(keyword), bool):
            exclusive = limits.pop(keyword)
            if exclusive and bound in limits:
                limits[keyword] = limits[bound]
    return limits


def _object(node: Mapping[str, Any], schema: Subschema) -> ObjectShape:
    dependencies = {**_members(node, "dependencies"), **_members(node, "dependentRequired")}
    implied = {**_members(node, "dependencies"), **_members(node, "dependentSchemas")}
    return ObjectShape(
        _limits(node, "object"),
        _subschemas(_members(node, "properties"), schema),
        _subschemas(_members(node, "patternProperties"), schema),
        frozenset(map(str, _items(node, "required"))),
        _unless_true(node.get("additionalProperties"), schema),
        _optional(node.get("unevaluatedProperties"), schema),
        {
            name: frozenset(map(str, needed))
            for name, needed in dependencies.items()
            if isinstance(needed, list)
        },
        _subschemas(
            {name: item for name, item in implied.items() if not isinstance(item, list)}, schema
        ),
    )


def _array(node: Mapping[str, Any], schema: Subschema) -> ArrayShape:
    items, additional = node.get("items"), node.get("additionalItems")
    first: list[Node] = []
    modern = schema.specification.name not in REF_ONLY_DRAFTS
    if "prefixItems" in node and modern:
        first, items, additional = _items(node, "prefixItems"), None, items
    elif isinstance(items, list):
        first, items = items, None
    elif items is False and modern:
        items, additional = None, False
    limits = _limits(node, "array")
    if "contains" in node and modern:
        limits.setdefault("minContains", 1)
    return ArrayShape(
        limits,
        node.get("uniqueItems") is True,
        _unless_true(items, schema),
        tuple(_subschema(item, schema) for item in first),
        _unless_true(additional, schema),
        _optional(node.get("unevaluatedItems"), schema),
    )


def _items(node: Mapping[str, Any], keyword: str) -> list[Any]:
    """Ignores invalid values: a $ref may lead to a part that no meta-schema has checked."""
    value = node.get(keyword)
    return value if isinstance(value, list) else []


def _members(node: Mapping[str, Any], keyword: str) -> Mapping[str, Any]:
    value = node.get(keyword)
    return value if isinstance(value, Mapping) else {}


def _subschema(node: object, schema: Subschema) -> Subschema:
    return schema.subschema_at(node if isinstance(node, bool | Mapping) else True)


def _subschemas(nodes: Mapping[str, Node], schema: Subschema) -> dict[str, Subschema]:
    return {name: _subschema(node, schema) for name, node in nodes.items()}


def _optional(node: Node | None, schema: Subschema) -> Subschema | None:
    return None if node is None else _subschema(node, schema)


def _unless_true(node: Node | None, schema: Subschema) -> Subschema | None:
    return None if node is True else _optional(node, schema)
