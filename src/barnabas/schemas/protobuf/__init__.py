"""Protobuf schemas: .proto text, or a serialized FileDescriptorProto in base64.

Clients that have only compiled classes (confluent_kafka's) send the second. In both cases, the
stored text is printed from the descriptor, with every type by its full name: texts that differ only
in comments, layout or the way they name a type are one schema.
"""

import base64
import binascii
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from google.protobuf.descriptor import Descriptor, FileDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError

from barnabas.schemas import Incompatibility, ParsedSchema, SchemaError
from barnabas.schemas.protobuf.comparison import incompatibilities
from barnabas.schemas.protobuf.compiler import MAIN_FILE, compile_files
from barnabas.schemas.protobuf.normalization import normalize
from barnabas.schemas.protobuf.options import quote
from barnabas.schemas.protobuf.printer import print_file


def parse(text: str, references: Mapping[str, str]) -> "ProtobufSchema":
    """Parses a schema. `references` has the texts of its imports, direct or not."""
    if not text.strip():
        raise SchemaError("The schema is empty.")
    texts = _Texts(references)
    files = compile_files(texts.as_text(text), texts.all())
    return ProtobufSchema(tuple(files), _linked(files))


@dataclass(frozen=True)
class ProtobufSchema:
    files: tuple[FileDescriptorProto, ...]
    """Each file follows those that it imports. The last is the schema's own."""
    pool: DescriptorPool
    """Has all files, linked."""

    @property
    def own(self) -> FileDescriptorProto:
        return self.files[-1]

    @cached_property
    def text(self) -> str:
        return print_file(self.own, self.pool)

    @cached_property
    def normalized(self) -> str:
        return print_file(normalize(self.own), self.pool, sort_options=True)

    @property
    def resolved(self) -> str:
        return self.text

    @property
    def name(self) -> str | None:
        """The first message, which is the type of a payload without indexes."""
        if not self.own.message_type:
            return None
        first = self.own.message_type[0].name
        return f"{self.own.package}.{first}" if self.own.package else first

    @property
    def serialized(self) -> str:
        """The FileDescriptorProto in base64, for `format=serialized`."""
        return base64.standard_b64encode(self.own.SerializeToString()).decode()

    @property
    def descriptor(self) -> FileDescriptor:
        return self.pool.FindFileByName(MAIN_FILE)

    def message(self, name: str) -> Descriptor:
        """Finds a message of the schema or its imports, by full name or name within the package."""
        package = f"{self.own.package}." if self.own.package else ""
        for candidate in (name.removeprefix("."), package + name):
            try:
                return self.pool.FindMessageTypeByName(candidate)
            except KeyError:
                continue
        names = ", ".join(sorted(self.descriptor.message_types_by_name)) or "none"
        raise SchemaError(f"There is no message {name!r} in the schema; there are: {names}.")

    def message_at(self, indexes: Sequence[int]) -> Descriptor:
        """Returns the message at an index path: in the file, then in nested messages."""
        path = tuple(indexes) or (0,)
        if any(index < 0 for index in path):
            raise SchemaError(f"There is no message at {list(path)} in the schema.")
        try:
            message = list(self.descriptor.message_types_by_name.values())[path[0]]
            for index in path[1:]:
                message = message.nested_types[index]
        except IndexError:
            raise SchemaError(f"There is no message at {list(path)} in the schema.") from None
        return message

    def require_valid(self) -> None:
        """Parsing has already validated the schema."""

    def find_incompatibilities(self, written: ParsedSchema) -> list[Incompatibility]:
        assert isinstance(written, ProtobufSchema)
        return incompatibilities(written.descriptor, self.descriptor)


class _Texts:
    """References as .proto text: descriptors in base64 are printed."""

    def __init__(self, references: Mapping[str, str]) -> None:
        self._references = dict(references)
        self._printed: dict[str, str] = {}
        self._visited: set[str] = set()

    def all(self) -> dict[str, str]:
        return {name: self._reference(name) for name in self._references}

    def as_text(self, text: str) -> str:
        file = _descriptor(text)
        if file is None:
            return text
        for name in file.dependency:
            if name in self._references:
                self._reference(name)
        imports = "".join(f"import {quote(name)};\n" for name in file.dependency)
        *imported, _ = compile_files(f'syntax = "proto3";\n{imports}', self._printed)
        file.name = MAIN_FILE
        return print_file(file, _linked([*imported, file]))

    def _reference(self, name: str) -> str:
        if name not in self._printed:
            if name in self._visited:
                raise SchemaError(f"The reference {name!r} imports itself.")
            self._visited.add(name)
            self._printed[name] = self.as_text(self._references[name])
        return self._printed[name]


def _linked(files: Iterable[FileDescriptorProto]) -> DescriptorPool:
    pool = DescriptorPool()
    for file in files:
        try:
            pool.Add(file)
        except TypeError as raised:
            raise SchemaError(f"The descriptor is not well formed: {raised}") from None
    return pool


def _descriptor(text: str) -> FileDescriptorProto | None:
    try:
        serialized = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
    try:
        return FileDescriptorProto.FromString(serialized)
    except DecodeError:
        return None
