"""Whether one Avro schema reads what another wrote, by Avro's rules of schema resolution.

Error types, paths and words are those that Avro's and Confluent's checks give, so that tools which
look for them find them. Names are compared without their namespaces, and logical types not at all,
as those checks do.
"""

from typing import Final

from barnabas.registry.formats import Incompatibility
from barnabas.registry.formats.avro.model import (
    MISSING,
    Array,
    AvroType,
    Enum,
    Field,
    Fixed,
    Map,
    Named,
    Record,
    Union,
)
from barnabas.registry.formats.bounds import Bounds

Found = list[Incompatibility]
Path = tuple[str, ...]


def incompatibilities(reader: AvroType, writer: AvroType) -> Found:
    bounds = Bounds("compare it")
    return _Comparison(bounds, _Comparison(bounds)).compare(reader, writer, ())


_PROMOTIONS: Final = {
    "long": ("int",),
    "float": ("int", "long"),
    "double": ("int", "long", "float"),
    "bytes": ("string",),
    "string": ("bytes",),
}


class _Comparison:
    def __init__(self, bounds: Bounds, alternatives: "_Comparison | None" = None) -> None:
        self._bounds = bounds
        # Branches of unions are tried apart: what they lack is reported at no path.
        self._alternatives = alternatives or self
        # A pair under comparison has found nothing yet: schemas that are recursive in the same
        # way are compatible unless something else says otherwise.
        self._compared: dict[tuple[int, int], Found] = {}

    def compare(self, reader: AvroType, writer: AvroType, path: Path) -> Found:
        pair = id(reader), id(writer)
        if pair not in self._compared:
            self._compared[pair] = []
            with self._bounds.level():
                found = self._compare(reader, writer, path)
            # A type used in many places is at fault once, where it is met first.
            self._compared[pair] = list(dict.fromkeys(found))
        return self._compared[pair]

    def _compare(self, reader: AvroType, writer: AvroType, path: Path) -> Found:
        match reader, writer:
            case Union(), Union():
                return self._unions(reader, writer, path)
            case _, Union():
                return [
                    found
                    for index, branch in enumerate(writer.branches)
                    for found in self.compare(reader, branch, (*path, str(index)))
                ]
            case Union(), _:
                if any(self._reads(branch, writer) for branch in reader.branches):
                    return []
                return [_missing_branch(writer, path)]
            case Array(), Array():
                return self.compare(reader.items, writer.items, (*path, "items"))
            case Map(), Map():
                return self.compare(reader.values, writer.values, (*path, "values"))
            case Fixed(), Fixed():
                return _names(reader, writer, path) + _sizes(reader, writer, path)
            case Enum(), Enum():
                return _names(reader, writer, path) + _symbols(reader, writer, path)
            case Record(), Record():
                return _names(reader, writer, path) + self._fields(reader, writer, path)
            case _:
                readable = (reader.kind, *_PROMOTIONS.get(reader.kind, ()))
                return [] if writer.kind in readable else [_type_mismatch(reader, writer, path)]

    def _unions(self, reader: Union, writer: Union, path: Path) -> Found:
        return [
            _missing_branch(branch, (*path, str(index)))
            for index, branch in enumerate(writer.branches)
            if not self._reads(reader, branch)
        ]

    def _reads(self, reader: AvroType, writer: AvroType) -> bool:
        return not self._alternatives.compare(reader, writer, ())

    def _fields(self, reader: Record, writer: Record, path: Path) -> Found:
        written = {field.name: field for field in writer.fields}
        found: Found = []
        for index, field in enumerate(reader.fields):
            place = (*path, "fields", str(index))
            source = _source(field, written)
            if source is not None:
                found += self.compare(field.type, source.type, (*place, "type"))
            elif field.default is MISSING:
                found.append(_missing_default(field, place))
        return found


def _source(field: Field, written: dict[str, Field]) -> Field | None:
    """What the writer has for a reader's field, by its name or else by its aliases."""
    names = (field.name, *field.aliases)
    return next((written[name] for name in names if name in written), None)


def _names(reader: Named, writer: Named, path: Path) -> Found:
    if reader.name.simple == writer.name.simple or writer.name in reader.aliases:
        return []
    return [
        Incompatibility(
            "NAME_MISMATCH",
            f"The name of the schema has changed (path '{_pointer((*path, 'name'))}')",
            f"expected: {writer.name.full}",
        )
    ]


def _sizes(reader: Fixed, writer: Fixed, path: Path) -> Found:
    if reader.size == writer.size:
        return []
    return [
        Incompatibility(
            "FIXED_SIZE_MISMATCH",
            f"The size of FIXED type field at path '{_pointer((*path, 'size'))}' in the {{reader}}"
            " schema does not match with the {writer} schema",
            f"expected: {writer.size}, found: {reader.size}",
        )
    ]


def _symbols(reader: Enum, writer: Enum, path: Path) -> Found:
    missing = sorted(set(writer.symbols).difference(reader.symbols))
    if not missing or reader.default is not None:
        return []
    symbols = f"[{', '.join(missing)}]"
    return [
        Incompatibility(
            "MISSING_ENUM_SYMBOLS",
            f"The {{reader}} schema is missing enum symbols '{symbols}' at path"
            f" '{_pointer((*path, 'symbols'))}' in the {{writer}} schema",
            symbols,
        )
    ]


def _missing_default(field: Field, path: Path) -> Incompatibility:
    return Incompatibility(
        "READER_FIELD_MISSING_DEFAULT_VALUE",
        f"The field '{field.name}' at path '{_pointer(path)}' in the {{reader}} schema has no"
        " default value and is missing in the {writer} schema",
        field.name,
    )


def _missing_branch(writer: AvroType, path: Path) -> Incompatibility:
    return Incompatibility(
        "MISSING_UNION_BRANCH",
        "The {reader} schema is missing a type inside a union field at path"
        f" '{_pointer(path)}' in the {{writer}} schema",
        f"reader union lacking writer type: {writer.kind.upper()}",
    )


def _type_mismatch(reader: AvroType, writer: AvroType, path: Path) -> Incompatibility:
    return Incompatibility(
        "TYPE_MISMATCH",
        f"The type (path '{_pointer(path)}') of a field in the {{reader}} schema does not match"
        " with the {writer} schema",
        f"reader type: {reader.kind.upper()} not compatible with writer type:"
        f" {writer.kind.upper()}",
    )


def _pointer(path: Path) -> str:
    return "/" + "/".join(path)
