"""Compares JSON schemas: does one accept every document that the other accepts?

Error types, paths and the rules of compatibility are those of Confluent's registry. For example, an
object that accepts any additional property (an open content model) cannot get new ones, because
existing documents may have them with other values; a closed one cannot lose any.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from typing import Final

from barnabas.schemas import Incompatibility
from barnabas.schemas.comparison import SchemaComparison, SchemaDifference
from barnabas.schemas.json_schema import containers
from barnabas.schemas.json_schema.containers import compare_limits
from barnabas.schemas.json_schema.documents import Subschema
from barnabas.schemas.json_schema.shapes import (
    ANY_SHAPE,
    NEVER_SHAPE,
    ArrayShape,
    CombinedShape,
    ConstShape,
    EnumShape,
    NotShape,
    NumberShape,
    ObjectShape,
    ScalarShape,
    Shape,
    ShapeCache,
    StringShape,
    canonical,
)

_IGNORED_IF_LENIENT: Final = re.compile(
    "(ADDITIONAL|UNEVALUATED)_PROPERTIES_(NARROWED|REMOVED)"
    "|(REQUIRED_PROPERTY_WITH_DEFAULT|OPTIONAL_PROPERTY)_ADDED_TO_OPEN_CONTENT_MODEL"
    "|PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL"
    "|PROPERTY_(ADDED|REMOVED)_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL"
)
"""Compatible changes under the policy LENIENT: it trusts producers to set known properties only."""


def incompatibilities(
    reader: Subschema, writer: Subschema, *, lenient: bool = False
) -> list[Incompatibility]:
    comparison = ShapeComparison(lenient=lenient)
    differences = comparison.run(comparison.shape(reader), comparison.shape(writer))
    return [describe_difference(difference) for difference in differences]


class ShapeComparison(SchemaComparison[Shape]):
    def __init__(self, *, lenient: bool = False) -> None:
        super().__init__()
        self._shapes = ShapeCache()
        self._lenient = lenient

    def shape(self, part: Subschema | Shape) -> Shape:
        return self._shapes.shape_of(part)

    def compare_subschemas(
        self, reader: Subschema, writer: Subschema, *steps: str
    ) -> Iterable[SchemaDifference]:
        return self.under(self.shape(reader), self.shape(writer), *steps)

    def differences(self, reader: Shape, writer: Shape) -> Iterable[SchemaDifference]:
        found = self._differences(reader, writer)
        if not self._lenient:
            return found
        return [one for one in found if not _IGNORED_IF_LENIENT.fullmatch(one.error_type)]

    def _differences(self, reader: Shape, writer: Shape) -> Iterable[SchemaDifference]:
        if self._is_part_compatible(reader, writer) or writer is NEVER_SHAPE or reader is ANY_SHAPE:
            return []
        match reader, writer:
            case CombinedShape(), CombinedShape():
                return self._combinations(reader, writer)
            case StringShape(), StringShape():
                return [*compare_limits(reader.limits, writer.limits), *_patterns(reader, writer)]
            case NumberShape(), NumberShape():
                return [*compare_limits(reader.limits, writer.limits), *_numbers(reader, writer)]
            case ObjectShape(), ObjectShape():
                return containers.compare_objects(self, reader, writer)
            case ArrayShape(), ArrayShape():
                return containers.compare_arrays(self, reader, writer)
            case EnumShape(), EnumShape():
                return _enumerations(reader, writer)
            case ConstShape(), ConstShape() if reader.value != writer.value:
                return [SchemaDifference("ENUM_ARRAY_CHANGED", ("const",))]
            case NotShape(), NotShape():
                if self.reads(self.shape(writer.of), self.shape(reader.of)):
                    return []
                return [SchemaDifference("NOT_TYPE_EXTENDED", ("not",))]
            case ScalarShape(), ScalarShape() if reader.kind == writer.kind:
                return []
            case _ if type(reader) is type(writer) and not isinstance(reader, ScalarShape):
                return []
            case _:
                return [SchemaDifference("TYPE_CHANGED")]

    def _is_part_compatible(self, reader: Shape, writer: Shape) -> bool:
        """Returns whether one side is a combination of which one part is compatible by itself."""
        match reader, writer:
            case CombinedShape(), CombinedShape():
                return False
            case CombinedShape(), _ if len(reader.parts) == 1 or reader.criterion != "allOf":
                return any(self.reads(self.shape(part), writer) for part in reader.parts)
            case _, CombinedShape() if len(writer.parts) == 1 or writer.criterion == "allOf":
                return any(self.reads(reader, self.shape(part)) for part in writer.parts)
            case _:
                return False

    def _combinations(
        self, reader: CombinedShape, writer: CombinedShape
    ) -> Iterator[SchemaDifference]:
        if not _criterion_readable(reader, writer):
            yield SchemaDifference("COMBINED_TYPE_CHANGED")
            return
        reader_parts, writer_parts = self._distinct(reader), self._distinct(writer)
        if len(writer_parts) < len(reader_parts) and reader.criterion == "allOf":
            yield SchemaDifference("PRODUCT_TYPE_EXTENDED")
        elif len(writer_parts) > len(reader_parts) and writer.criterion != "allOf":
            yield SchemaDifference("SUM_TYPE_NARROWED")
        readable = [
            [index for index, part in enumerate(reader_parts) if self.reads(part, item)]
            for item in writer_parts
        ]
        if largest_matching(readable) < min(len(reader_parts), len(writer_parts)):
            yield SchemaDifference("COMBINED_TYPE_SUBSCHEMAS_CHANGED")

    def _distinct(self, combination: CombinedShape) -> list[Shape]:
        distinct: dict[str | int, Shape] = {}
        for part in combination.parts:
            key = canonical(part.node) if isinstance(part, Subschema) else id(part)
            distinct.setdefault(key, self.shape(part))
        return list(distinct.values())


def _criterion_readable(reader: CombinedShape, writer: CombinedShape) -> bool:
    if reader.criterion in (writer.criterion, "anyOf"):
        return True
    match len(reader.parts), len(writer.parts):
        case 1, 1:
            return True
        case _, 1:
            return reader.criterion == "oneOf"
        case 1, _:
            return writer.criterion == "allOf"
        case _:
            return False


def _patterns(reader: StringShape, writer: StringShape) -> Iterator[SchemaDifference]:
    if reader.pattern is not None and reader.pattern != writer.pattern:
        change = "ADDED" if writer.pattern is None else "CHANGED"
        yield SchemaDifference(f"PATTERN_{change}", ("pattern",))


def _numbers(reader: NumberShape, writer: NumberShape) -> Iterator[SchemaDifference]:
    if reader.multiple_of is not None:
        change = _multiple_change(reader.multiple_of, writer.multiple_of)
        if change is not None:
            yield SchemaDifference(f"MULTIPLE_OF_{change}", ("multipleOf",))
    if reader.integer and not writer.integer:
        yield SchemaDifference("TYPE_NARROWED")


def _multiple_change(reader: float, writer: float | None) -> str | None:
    if writer is None:
        return "ADDED"
    read, written = Decimal(str(reader)), Decimal(str(writer))
    if _divides(read, written):
        return None
    return "EXPANDED" if _divides(written, read) else "CHANGED"


def _divides(divisor: Decimal, number: Decimal) -> bool:
    (below, above), (under, over) = divisor.as_integer_ratio(), number.as_integer_ratio()
    return (under * above) % (over * below) == 0


def _enumerations(reader: EnumShape, writer: EnumShape) -> Iterator[SchemaDifference]:
    if not writer.values <= reader.values:
        change = "NARROWED" if reader.values < writer.values else "CHANGED"
        yield SchemaDifference(f"ENUM_ARRAY_{change}", ("enum",))


def largest_matching(partners: Sequence[Sequence[int]]) -> int:
    """Returns the size of the largest bipartite matching.

    `partners` has, for each item on the left, the items on the right that it may be paired with.
    Augmenting paths are searched breadth first, so recursion depth does not limit them.
    """
    partner_of: dict[int, int] = {}
    return sum(_augment(left, partners, partner_of) for left in range(len(partners)))


def _augment(start: int, partners: Sequence[Sequence[int]], partner_of: dict[int, int]) -> bool:
    reached_from: dict[int, int] = {}
    pending = [start]
    for left in pending:
        for right in partners[left]:
            if right in reached_from:
                continue
            reached_from[right] = left
            if right not in partner_of:
                _flip(right, start, reached_from, partner_of)
                return True
            pending.append(partner_of[right])
    return False


def _flip(right: int, start: int, reached_from: dict[int, int], partner_of: dict[int, int]) -> None:
    """Pairs the items along the path from its free end back to the start."""
    left_to_right = {left: item for item, left in partner_of.items()}
    while True:
        left = reached_from[right]
        partner_of[right] = left
        if left == start:
            return
        right = left_to_right[left]


def describe_difference(difference: SchemaDifference) -> Incompatibility:
    path = "#/" + "/".join(difference.path)
    meaning = next(
        words for pattern, words in _MEANINGS if re.fullmatch(pattern, difference.error_type)
    )
    return Incompatibility(difference.error_type, f"At path '{path}' {meaning}", difference.about)


_MEANINGS: Final = (
    (
        "(REQUIRED|OPTIONAL)_PROPERTY_.*ADDED_TO_OPEN_CONTENT_MODEL|ITEM_ADDED_TO_OPEN_.*",
        "the {reader} schema describes what the {writer} schema, with its open content model,"
        " lets be anything",
    ),
    (
        "REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL",
        "the {reader} schema requires a property that the {writer} schema does not have",
    ),
    (
        "(PROPERTY|ITEM)_REMOVED_FROM_CLOSED_CONTENT_MODEL",
        "the {writer} schema has a property or item that the {reader} schema lacks and, with its"
        " closed content model, forbids",
    ),
    (
        "(PROPERTY|ITEM)_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
        "the {writer} schema has a property or item that the {reader} schema lacks and does not"
        " cover with its partially open content model",
    ),
    (
        "(PROPERTY|ITEM)_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
        "the {reader} schema has a property or item that the partially open content model of the"
        " {writer} schema does not cover",
    ),
    (
        "REQUIRED_ATTRIBUTE_ADDED",
        "the {reader} schema requires a property that is optional in the {writer} schema",
    ),
    (
        "(ADDITIONAL|UNEVALUATED)_(PROPERTIES|ITEMS)_REMOVED",
        "the {reader} schema forbids what the {writer} schema lets be added",
    ),
    (
        "(ADDITIONAL|UNEVALUATED)_(PROPERTIES|ITEMS)_NARROWED",
        "the {reader} schema asks more of what is added than the {writer} schema",
    ),
    ("DEPENDENCY_.*", "the {reader} schema asks for more than the {writer} schema"),
    ("ENUM_ARRAY_NARROWED", "the {reader} schema has fewer values than the {writer} schema"),
    ("ENUM_ARRAY_CHANGED", "the {reader} schema lacks values of the {writer} schema"),
    (
        "PRODUCT_TYPE_EXTENDED",
        "more schemas must all fit in the {reader} schema than in the {writer} schema",
    ),
    ("SUM_TYPE_NARROWED", "the {reader} schema has fewer alternatives than the {writer} schema"),
    (
        "COMBINED_TYPE_SUBSCHEMAS_CHANGED",
        "not each combined schema of the {writer} schema is read by one of the {reader} schema",
    ),
    ("COMBINED_TYPE_CHANGED", "the {reader} and the {writer} schema combine schemas differently"),
    ("NOT_TYPE_EXTENDED", "the {reader} schema excludes more than the {writer} schema"),
    ("TYPE_NARROWED", "the {reader} schema takes whole numbers, the {writer} schema any"),
    ("TYPE_CHANGED", "the type differs between the {reader} and the {writer} schema"),
    (".*_INCREASED", "the value is higher in the {reader} schema than in the {writer} schema"),
    (".*_DECREASED", "the value is lower in the {reader} schema than in the {writer} schema"),
    (".*_ADDED", "the {reader} schema has a keyword that the {writer} schema does not have"),
    (
        ".*_(CHANGED|EXPANDED)",
        "the value of the {reader} schema does not follow from that of the {writer} schema",
    ),
)
