"""What a JSON schema asks of a value, sorted by the kind of value it speaks of.

A schema's keywords speak of strings, numbers, objects and arrays side by side; to compare two
schemas each is seen as one shape, or as several of which all (any, one) must fit. A shape holds
the schemas within it unread, as places: they may lead back to where they are.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, cast

from barnabas.schemas import json_text
from barnabas.schemas.json_schema.documents import REF_STANDS_ALONE, Node, Subschema

Limits = dict[str, float]
"""Keywords that set a bound, with the bound."""


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
    """As texts in which equal values are equal."""


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
    """What all items are, where they are not told apart."""
    first: tuple[Subschema, ...]
    """What the items at the beginning are, one by one."""
    additional: Subschema | None
    """What the items after those are; None where anything."""
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
    """By property: those that must be there where it is."""
    implied: dict[str, Subschema]
    """By property: what the whole must be where it is."""


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
    """The shape of each place, the same one each time it is asked for."""

    _of: dict[int, tuple[Subschema, Shape]] = field(default_factory=dict)

    def shape_of(self, part: Subschema | Shape) -> Shape:
        if not isinstance(part, Subschema):
            return part
        if isinstance(part.node, bool):
            return ANY_SHAPE if part.node else NEVER_SHAPE
        known = self._of.get(id(part.node))
        if known is None:
            known = self._of[id(part.node)] = part, self._shape(part)
        return known[1]

    def _shape(self, place: Subschema) -> Shape:
        target = place.target()
        if target is not None and place.is_alias:
            return self.shape_of(target)
        parts = tuple(_parts(place))
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
    """A text that two JSON values share where they are equal."""
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


def _parts(place: Subschema) -> Iterator[Shape]:
    node = cast("Mapping[str, Any]", place.node)
    if "enum" in node:
        yield EnumShape(frozenset(canonical(value) for value in _items(node, "enum")))
    for criterion in _COMBINATIONS:
        if criterion in node:
            yield CombinedShape(
                criterion, tuple(_place(item, place) for item in _items(node, criterion))
            )
    if "not" in node:
        yield NotShape(_place(node["not"], place))
    if "const" in node:
        yield ConstShape(canonical(node["const"]))
    spoken_of = node.get("type")
    if isinstance(spoken_of, str):
        yield _typed(spoken_of, place)
    elif spoken_of is not None:
        kinds = tuple(_typed(str(kind), place) for kind in _items(node, "type"))
        yield CombinedShape("anyOf", kinds)
    for kind, keywords in _KEYWORDS.items():
        if kind not in _covered(node) and any(keyword in node for keyword in keywords):
            yield _typed(kind, place)
    if any(keyword in node for keyword in _CONDITIONS):
        yield ConditionalShape()


def _covered(node: Mapping[str, Any]) -> set[str]:
    named = {str(kind) for kind in (node.get("type"), *_items(node, "type"))}
    return named | ({"number"} if "integer" in named else set())


def _typed(kind: str, place: Subschema) -> Shape:
    node = cast("Mapping[str, Any]", place.node)
    match kind:
        case "string":
            pattern = node.get("pattern")
            return StringShape(_limits(node, "string"), None if pattern is None else str(pattern))
        case "number" | "integer":
            multiple = node.get("multipleOf")
            divisor = multiple if isinstance(multiple, int | float) and multiple > 0 else None
            return NumberShape(_number_limits(node), divisor, kind == "integer")
        case "object":
            return _object(node, place)
        case "array":
            return _array(node, place)
        case _:
            return ScalarShape(kind)


def _limits(node: Mapping[str, Any], kind: str) -> Limits:
    found = {keyword: node.get(keyword) for keyword in _LIMITS[kind]}
    return {keyword: bound for keyword, bound in found.items() if isinstance(bound, int | float)}


def _number_limits(node: Mapping[str, Any]) -> Limits:
    """In draft 4 `exclusiveMaximum` is a boolean that speaks of `maximum`."""
    limits = _limits(node, "number")
    for keyword, bound in (("exclusiveMaximum", "maximum"), ("exclusiveMinimum", "minimum")):
        if isinstance(limits.get(keyword), bool):
            exclusive = limits.pop(keyword)
            if exclusive and bound in limits:
                limits[keyword] = limits[bound]
    return limits


def _object(node: Mapping[str, Any], place: Subschema) -> ObjectShape:
    dependencies = {**_members(node, "dependencies"), **_members(node, "dependentRequired")}
    implied = {**_members(node, "dependencies"), **_members(node, "dependentSchemas")}
    return ObjectShape(
        _limits(node, "object"),
        _places(_members(node, "properties"), place),
        _places(_members(node, "patternProperties"), place),
        frozenset(map(str, _items(node, "required"))),
        _unless_true(node.get("additionalProperties"), place),
        _optional(node.get("unevaluatedProperties"), place),
        {
            name: frozenset(map(str, needed))
            for name, needed in dependencies.items()
            if isinstance(needed, list)
        },
        _places(
            {name: item for name, item in implied.items() if not isinstance(item, list)}, place
        ),
    )


def _array(node: Mapping[str, Any], place: Subschema) -> ArrayShape:
    items, additional = node.get("items"), node.get("additionalItems")
    first: list[Node] = []
    modern = place.specification.name not in REF_STANDS_ALONE
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
        _unless_true(items, place),
        tuple(_place(item, place) for item in first),
        _unless_true(additional, place),
        _optional(node.get("unevaluatedItems"), place),
    )


def _items(node: Mapping[str, Any], keyword: str) -> list[Any]:
    """A $ref may lead to where no meta-schema looked: what is wrong there says nothing."""
    found = node.get(keyword)
    return found if isinstance(found, list) else []


def _members(node: Mapping[str, Any], keyword: str) -> Mapping[str, Any]:
    found = node.get(keyword)
    return found if isinstance(found, Mapping) else {}


def _place(node: object, place: Subschema) -> Subschema:
    return place.subschema_at(node if isinstance(node, bool | Mapping) else True)


def _places(nodes: Mapping[str, Node], place: Subschema) -> dict[str, Subschema]:
    return {name: _place(node, place) for name, node in nodes.items()}


def _optional(node: Node | None, place: Subschema) -> Subschema | None:
    return None if node is None else _place(node, place)


def _unless_true(node: Node | None, place: Subschema) -> Subschema | None:
    return None if node is True else _optional(node, place)
