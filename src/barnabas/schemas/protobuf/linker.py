"""Links the descriptors of a schema: its own file, and the files whose types it uses."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool

from barnabas.schemas import SchemaError
from barnabas.schemas.protobuf.bundled_files import bundled_descriptor, bundled_files
from barnabas.schemas.protobuf.descriptor_builder import build_descriptor
from barnabas.schemas.protobuf.syntax import ProtoFile
from barnabas.schemas.protobuf.type_table import TypeTable

MAIN_FILE = "default"
"""The name of the schema's own file, as in Confluent's registry."""


@dataclass(slots=True, frozen=True)
class LinkedFiles:
    own: FileDescriptorProto
    pool: DescriptorPool
    """Has the schema's own file and all files that it uses."""


def link(own: ProtoFile, references: Mapping[str, ProtoFile], table: TypeTable) -> LinkedFiles:
    """Raises SchemaError if the files cannot be used together."""
    files = {**bundled_files(), **references, MAIN_FILE: own}
    descriptor: FileDescriptorProto | None = None
    pool = DescriptorPool()
    for descriptor in _in_order(files, table):
        try:
            pool.Add(descriptor)
        except TypeError as raised:
            reason = str(raised).rpartition("descriptor pool: ")[2]
            raise SchemaError(f"The schema is not valid: {reason}") from None
    assert descriptor is not None
    return LinkedFiles(descriptor, pool)


def _in_order(files: Mapping[str, ProtoFile], table: TypeTable) -> Iterator[FileDescriptorProto]:
    """Yields the schema's own file last, and each file after those that it needs."""
    pending = [_LinkedFile(MAIN_FILE, files, table)]
    visited = {MAIN_FILE}
    while pending:
        name = next(pending[-1].remaining, None)
        if name is None:
            yield pending.pop().descriptor
        elif name not in visited:
            visited.add(name)
            pending.append(_LinkedFile(name, files, table))


class _LinkedFile:
    """A file, and the imports that are not linked yet."""

    __slots__ = ("descriptor", "remaining")

    def __init__(self, name: str, files: Mapping[str, ProtoFile], table: TypeTable) -> None:
        bundled = bundled_descriptor(name)
        self.descriptor = _with_imports(name, files, table) if bundled is None else bundled
        self.remaining = iter(self.descriptor.dependency)


def _with_imports(
    name: str, files: Mapping[str, ProtoFile], table: TypeTable
) -> FileDescriptorProto:
    """Builds a descriptor with the imports that lead to a file, and those that its types need."""
    file = files[name]
    try:
        built = build_descriptor(name, file, table)
    except SchemaError as error:
        if name == MAIN_FILE:
            raise
        raise SchemaError(f"{name}: {error}") from None
    imports = [one for one in dict.fromkeys(file.all_imports()) if one in files and one != name]
    names = list(dict.fromkeys([*imports, *built.used_files]))
    built.descriptor.dependency.extend(names)
    built.descriptor.public_dependency.extend(
        index for index, one in enumerate(names) if one in file.public_imports
    )
    return built.descriptor
