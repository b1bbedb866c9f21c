"""Whether one JSON schema accepts all that another accepts, as far as their keywords tell.

Error types, paths and what counts as compatible are those of Confluent's registry: an object that
takes any further property (an open content model) cannot get new ones, for they may be there
already with other values; one that takes none (closed) cannot lose any.
"""

from collections.abc import Iterable, Iterator
from decimal import Decimal

from barnabas.schemas import Incompatibility
from barnabas.schemas.json_schema import containers, wording
from barnabas.schemas.json_schema.documents import Place
from barnabas.schemas.json_schema.limits import limits
from barnabas.schemas.json_schema.matching import largest_matching
from barnabas.schemas.json_schema.shapes import (
    ANYTHING,
    NOTHING,
    Array,
    Combination,
    Constant,
    Enumeration,
    Negation,
    Number,
    Object,
    Scalar,
    Shape,
    Shapes,
    Text,
    canonical,
)
from barnabas.schemas.pairs import Comparison, Difference


def incompatibilities(reader: Place, writer: Place) -> list[Incompatibility]:
    comparison = ShapeComparison()
    found = comparison.run(comparison.shape(reader), comparison.shape(writer))
    return [wording.incompatibility(difference) for difference in found]


class ShapeComparison(Comparison[Shape]):
    def __init__(self) -> None:
        super().__init__()
        self._shapes = Shapes()

    def shape(self, part: Place | Shape) -> Shape:
        return self._shapes.of(part)

    def places(self, reader: Place, writer: Place, *steps: str) -> Iterable[Difference]:
        return self.under(self.shape(reader), self.shape(writer), *steps)

    def differences(self, reader: Shape, writer: Shape) -> Iterable[Difference]:
        if self._one_of_many(reader, writer) or writer is NOTHING or reader is ANYTHING:
            return []
        match reader, writer:
            case Combination(), Combination():
                return self._combinations(reader, writer)
            case Text(), Text():
                return [*limits(reader.limits, writer.limits), *_patterns(reader, writer)]
            case Number(), Number():
                return [*limits(reader.limits, writer.limits), *_numbers(reader, writer)]
            case Object(), Object():
                return containers.objects(self, reader, writer)
            case Array(), Array():
                return containers.arrays(self, reader, writer)
            case Enumeration(), Enumeration():
                return _enumerations(reader, writer)
            case Constant(), Constant() if reader.value != writer.value:
                return [Difference("ENUM_ARRAY_CHANGED", ("const",))]
            case Negation(), Negation():
                if self.reads(self.shape(writer.of), self.shape(reader.of)):
                    return []
                return [Difference("NOT_TYPE_EXTENDED", ("not",))]
            case Scalar(), Scalar() if reader.kind == writer.kind:
                return []
            case _ if type(reader) is type(writer) and not isinstance(reader, Scalar):
                return []
            case _:
                return [Difference("TYPE_CHANGED")]

    def _one_of_many(self, reader: Shape, writer: Shape) -> bool:
        """Whether one side is a combination of which a single part settles the question."""
        match reader, writer:
            case Combination(), Combination():
                return False
            case Combination(), _ if len(reader.parts) == 1 or reader.criterion != "allOf":
                return any(self.reads(self.shape(part), writer) for part in reader.parts)
            case _, Combination() if len(writer.parts) == 1 or writer.criterion == "allOf":
                return any(self.reads(reader, self.shape(part)) for part in writer.parts)
            case _:
                return False

    def _combinations(self, reader: Combination, writer: Combination) -> Iterator[Difference]:
        if not _criterion_readable(reader, writer):
            yield Difference("COMBINED_TYPE_CHANGED")
            return
        reading, written = self._distinct(reader), self._distinct(writer)
        if len(written) < len(reading) and reader.criterion == "allOf":
            yield Difference("PRODUCT_TYPE_EXTENDED")
        elif len(written) > len(reading) and writer.criterion != "allOf":
            yield Difference("SUM_TYPE_NARROWED")
        readable = [
            [index for index, part in enumerate(reading) if self.reads(part, each)]
            for each in written
        ]
        if largest_matching(readable) < min(len(reading), len(written)):
            yield Difference("COMBINED_TYPE_SUBSCHEMAS_CHANGED")

    def _distinct(self, combination: Combination) -> list[Shape]:
        told_apart: dict[str | int, Shape] = {}
        for part in combination.parts:
            key = canonical(part.node) if isinstance(part, Place) else id(part)
            told_apart.setdefault(key, self.shape(part))
        return list(told_apart.values())


def _criterion_readable(reader: Combination, writer: Combination) -> bool:
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


def _patterns(reader: Text, writer: Text) -> Iterator[Difference]:
    if reader.pattern is not None and reader.pattern != writer.pattern:
        change = "ADDED" if writer.pattern is None else "CHANGED"
        yield Difference(f"PATTERN_{change}", ("pattern",))


def _numbers(reader: Number, writer: Number) -> Iterator[Difference]:
    if reader.multiple_of is not None:
        change = _multiple_change(reader.multiple_of, writer.multiple_of)
        if change is not None:
            yield Difference(f"MULTIPLE_OF_{change}", ("multipleOf",))
    if reader.integer and not writer.integer:
        yield Difference("TYPE_NARROWED")


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


def _enumerations(reader: Enumeration, writer: Enumeration) -> Iterator[Difference]:
    if not writer.values <= reader.values:
        change = "NARROWED" if reader.values < writer.values else "CHANGED"
        yield Difference(f"ENUM_ARRAY_{change}", ("enum",))
