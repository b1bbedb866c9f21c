"""Compares Avro schemas: can one read data of the other by Avro's schema resolution?

Error types and paths are those of Avro's own check in Java. As there, names are compared without
their namespaces, and logical types are not compared.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from barnabas.schemas import Incompatibility
from barnabas.schemas.avro.model import (
    MISSING,
    AvroArray,
    AvroEnum,
    AvroField,
    AvroFixed,
    AvroMap,
    AvroRecord,
    AvroType,
    AvroUnion,
    NamedAvroType,
)
from barnabas.schemas.comparison import SchemaComparison, SchemaDifference


def incompatibilities(reader: AvroType, writer: AvroType) -> list[Incompatibility]:
    return [
        Incompatibility(
            difference.error_type,
            _DESCRIPTIONS[difference.error_type].format(
                path="/" + "/".join(difference.path),
                about=difference.about,
                reader="{reader}",
                writer="{writer}",
            ),
            difference.about,
        )
        for difference in _Resolution().run(reader, writer)
    ]


_DESCRIPTIONS: Final = {
    "READER_FIELD_MISSING_DEFAULT_VALUE": (
        "The field '{about}' at path '{path}' of the {reader} schema is not in the {writer} schema"
        " and has no default value to take instead"
    ),
    "NAME_MISMATCH": (
        "The name at path '{path}' differs between the {reader} and the {writer} schema,"
        " and no alias bridges them ({about})"
    ),
    "TYPE_MISMATCH": (
        "The type at path '{path}' of the {reader} schema cannot be read from that of the {writer}"
        " schema ({about})"
    ),
    "MISSING_UNION_BRANCH": (
        "The union at path '{path}' lacks a branch in the {reader} schema that the {writer} schema"
        " may have written ({about})"
    ),
    "MISSING_ENUM_SYMBOLS": (
        "The enum at path '{path}' of the {reader} schema has no default and lacks the symbols"
        " {about} of the {writer} schema"
    ),
    "FIXED_SIZE_MISMATCH": (
        "The size at path '{path}' differs between the {reader} and the {writer} schema ({about})"
    ),
}

_PROMOTIONS: Final = {
    "long": ("int",),
    "float": ("int", "long"),
    "double": ("int", "long", "float"),
    "bytes": ("string",),
    "string": ("bytes",),
}


class _Resolution(SchemaComparison[AvroType]):
    def differences(self, reader: AvroType, writer: AvroType) -> Iterable[SchemaDifference]:
        match reader, writer:
            case AvroUnion(), AvroUnion():
                return self._unions(reader, writer)
            case _, AvroUnion():
                return self._all_branches(reader, writer)
            case AvroUnion(), _:
                if any(self.reads(branch, writer) for branch in reader.branches):
                    return []
                return [_missing_branch(writer)]
            case AvroArray(), AvroArray():
                return self.under(reader.items, writer.items, "items")
            case AvroMap(), AvroMap():
                return self.under(reader.values, writer.values, "values")
            case AvroFixed(), AvroFixed():
                return [*_names(reader, writer), *_sizes(reader, writer)]
            case AvroEnum(), AvroEnum():
                return [*_names(reader, writer), *_symbols(reader, writer)]
            case AvroRecord(), AvroRecord():
                return [*_names(reader, writer), *self._fields(reader, writer)]
            case _:
                return _kinds(reader, writer)

    def _unions(self, reader: AvroUnion, writer: AvroUnion) -> Iterator[SchemaDifference]:
        for index, branch in enumerate(writer.branches):
            if not self.reads(reader, branch):
                yield _missing_branch(branch).under(str(index))

    def _all_branches(self, reader: AvroType, writer: AvroUnion) -> Iterator[SchemaDifference]:
        for index, branch in enumerate(writer.branches):
            yield from self.under(reader, branch, str(index))

    def _fields(self, reader: AvroRecord, writer: AvroRecord) -> Iterator[SchemaDifference]:
        writer_fields = {field.name: field for field in writer.fields}
        for index, field in enumerate(reader.fields):
            source = _source(field, writer_fields)
            if source is not None:
                yield from self.under(field.type, source.type, "fields", str(index), "type")
            elif field.default is MISSING:
                yield SchemaDifference(
                    "READER_FIELD_MISSING_DEFAULT_VALUE", ("fields", str(index)), field.name
                )


def _source(field: AvroField, writer_fields: dict[str, AvroField]) -> AvroField | None:
    """Returns the writer's field for a reader's field, by its name or else by its aliases."""
    names = (field.name, *field.aliases)
    return next((writer_fields[name] for name in names if name in writer_fields), None)


def _names(reader: NamedAvroType, writer: NamedAvroType) -> Iterator[SchemaDifference]:
    if reader.name.simple != writer.name.simple and writer.name not in reader.aliases:
        yield SchemaDifference("NAME_MISMATCH", ("name",), f"expected: {writer.name.full}")


def _sizes(reader: AvroFixed, writer: AvroFixed) -> Iterator[SchemaDifference]:
    if reader.size != writer.size:
        sizes = f"expected: {writer.size}, found: {reader.size}"
        yield SchemaDifference("FIXED_SIZE_MISMATCH", ("size",), sizes)


def _symbols(reader: AvroEnum, writer: AvroEnum) -> Iterator[SchemaDifference]:
    missing = sorted(set(writer.symbols).difference(reader.symbols))
    if missing and reader.default is None:
        yield SchemaDifference("MISSING_ENUM_SYMBOLS", ("symbols",), f"[{', '.join(missing)}]")


def _kinds(reader: AvroType, writer: AvroType) -> Iterator[SchemaDifference]:
    if writer.kind not in (reader.kind, *_PROMOTIONS.get(reader.kind, ())):
        kinds = f"expected: {writer.kind.upper()}, found: {reader.kind.upper()}"
        yield SchemaDifference("TYPE_MISMATCH", (), kinds)


def _missing_branch(writer: AvroType) -> SchemaDifference:
    return SchemaDifference("MISSING_UNION_BRANCH", (), f"expected: {writer.kind.upper()}")
