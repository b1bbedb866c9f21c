"""Resolves the names of types and extensions in the files of a schema.

Every type of the schema, its references and the bundled files is visible everywhere, whatever a
file imports: Confluent's registry resolves names so, and references need not be named as imports.
"""

from collections import ChainMap
from collections.abc import Iterator, Mapping, MutableMapping
from dataclasses import dataclass, field

from barnabas.schemas import SchemaError
from barnabas.schemas.protobuf.syntax import (
    ProtoEnum,
    ProtoExtend,
    ProtoField,
    ProtoFile,
    ProtoMessage,
)

MAX_NAME_LENGTH = 1000
"""Characters of a type's full name: the names of a hostile schema must not fill the memory."""


@dataclass(slots=True, frozen=True)
class TypeEntry:
    """A message or an enum, with the file that declares it."""

    full_name: str
    package: str
    file_name: str
    node: ProtoMessage | ProtoEnum

    @property
    def local_name(self) -> str:
        """The name within the package."""
        return self.full_name.removeprefix(f"{self.package}.")

    @property
    def is_enum(self) -> bool:
        return isinstance(self.node, ProtoEnum)


@dataclass(slots=True, frozen=True)
class TypeTable:
    """Types and extension fields by full name, without a leading dot."""

    types: MutableMapping[str, TypeEntry]
    extensions: MutableMapping[str, ProtoField]

    def find(self, name: str, scope: str) -> TypeEntry | None:
        """Returns the type that a name means in a message or package."""
        return next((self.types[full] for full in _candidates(name, scope, self.types)), None)

    def find_extension(self, name: str, scope: str) -> str | None:
        """Returns the full name of the extension field that a name means in a scope."""
        return next(_candidates(name, scope, self.extensions), None)


def _candidates(name: str, scope: str, known: Mapping[str, object]) -> Iterator[str]:
    if name.startswith("."):
        if name[1:] in known:
            yield name[1:]
        return
    while scope:
        if (full_name := f"{scope}.{name}") in known:
            yield full_name
        scope = scope.rpartition(".")[0]
    if name in known:
        yield name


def join_names(scope: str, name: str) -> str:
    return f"{scope}.{name}" if scope else name


def create_table(files: Mapping[str, ProtoFile], bundled: TypeTable | None = None) -> TypeTable:
    """`files` are by name. A type that several declare is that of the last."""
    collector = _Collector()
    for name, file in files.items():
        collector.file(name, file)
    if bundled is None:
        return TypeTable(collector.types, collector.extensions)
    return TypeTable(
        ChainMap(collector.types, bundled.types),
        ChainMap(collector.extensions, bundled.extensions),
    )


@dataclass(slots=True)
class _Collector:
    types: dict[str, TypeEntry] = field(default_factory=dict)
    extensions: dict[str, ProtoField] = field(default_factory=dict)

    def file(self, file_name: str, file: ProtoFile) -> None:
        self._extends(file.extends, file.package)
        for group in (group for extend in file.extends for group in extend.groups):
            self._type(group.message, file.package, file.package, file_name)
        nodes: list[ProtoMessage | ProtoEnum] = [*file.messages, *file.enums]
        for node in nodes:
            self._type(node, file.package, file.package, file_name)

    def _type(
        self, node: ProtoMessage | ProtoEnum, scope: str, package: str, file_name: str
    ) -> None:
        full_name = join_names(scope, node.name)
        if len(full_name) > MAX_NAME_LENGTH:
            raise SchemaError(f"The name {full_name:.40}... is longer than {MAX_NAME_LENGTH}.")
        self.types[full_name] = TypeEntry(full_name, package, file_name, node)
        if isinstance(node, ProtoMessage):
            self._extends(node.extends, full_name)
            types: list[ProtoMessage | ProtoEnum] = [group.message for group in node.all_groups()]
            types += [*node.messages, *node.enums]
            for nested in types:
                self._type(nested, full_name, package, file_name)

    def _extends(self, extends: tuple[ProtoExtend, ...], scope: str) -> None:
        for extend in extends:
            for one in extend.fields:
                self.extensions[join_names(scope, one.name)] = one
