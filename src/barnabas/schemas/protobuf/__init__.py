"""Protobuf schemas: .proto text, or a serialized FileDescriptorProto in base64.

Clients that have only compiled classes (confluent_kafka's) send the second. Whichever came,
what is stored and given out is .proto text printed from the descriptor, with every type by its
full name: texts that differ in comments, layout or how they name a type are one schema.
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
    """Read a schema; `references` has the texts of what it imports, and of what those import."""
    if not text.strip():
        raise SchemaError("The schema is empty.")
    texts = _Texts(references)
    files = compile_files(texts.as_text(text), texts.all())
    return ProtobufSchema(tuple(files), _linked(files))


@dataclass(frozen=True)
class ProtobufSchema:
    files: tuple[FileDescriptorProto, ...]
    """Each after those it imports; the last is the schema's own."""
    pool: DescriptorPool
    """All its files, linked."""

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
        """The first message: what a payload without indexes is."""
        if not self.own.message_type:
            return None
        first = self.own.message_type[0].name
        return f"{self.own.package}.{first}" if self.own.package else first

    @property
    def serialized(self) -> str:
        """What `format=serialized` asks for: the FileDescriptorProto in base64."""
        return base64.standard_b64encode(self.own.SerializeToString()).decode()

    @property
    def descriptor(self) -> FileDescriptor:
        return self.pool.FindFileByName(MAIN_FILE)

    def message(self, name: str) -> Descriptor:
        """Of the schema or of what it imports, by its full name or the one within the package."""
        package = f"{self.own.package}." if self.own.package else ""
        for candidate in (name.removeprefix("."), package + name):
            try:
                return self.pool.FindMessageTypeByName(candidate)
            except KeyError:
                continue
        known = ", ".join(sorted(self.descriptor.message_types_by_name)) or "none"
        raise SchemaError(f"There is no message {name!r} in the schema; there are: {known}.")

    def message_at(self, indexes: Sequence[int]) -> Descriptor:
        """The message that a payload's indexes choose: of the file, then nested ones."""
        path = tuple(indexes) or (0,)
        if any(index < 0 for index in path):
            raise SchemaError(f"There is no message at {list(path)} in the schema.")
        try:
            chosen = list(self.descriptor.message_types_by_name.values())[path[0]]
            for index in path[1:]:
                chosen = chosen.nested_types[index]
        except IndexError:
            raise SchemaError(f"There is no message at {list(path)} in the schema.") from None
        return chosen

    def require_valid(self) -> None:
        """What can be read is valid."""

    def find_incompatibilities(self, written: ParsedSchema) -> list[Incompatibility]:
        assert isinstance(written, ProtobufSchema)
        return incompatibilities(written.descriptor, self.descriptor)


class _Texts:
    """What was given, each as .proto text: a descriptor in base64 is printed."""

    def __init__(self, references: Mapping[str, str]) -> None:
        self._references = dict(references)
        self._printed: dict[str, str] = {}
        self._open: set[str] = set()

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
            if name in self._open:
                raise SchemaError(f"The reference {name!r} imports itself.")
            self._open.add(name)
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
