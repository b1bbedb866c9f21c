"""Protobuf schemas: .proto text, or a serialized FileDescriptorProto in base64.

Clients that have only compiled classes (confluent_kafka's) send the second. The stored text is
printed from what was parsed, in the layout and with the words of Confluent's registry: comments are
dropped, and names stay as they were written. Imports and options that lead nowhere are kept.
"""

import base64
import binascii
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from google.protobuf.descriptor import Descriptor, FileDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.message import DecodeError

from barnabas.schemas import Incompatibility, ParsedSchema, SchemaError
from barnabas.schemas.protobuf.bundled_files import bundled_files, bundled_table
from barnabas.schemas.protobuf.comparison import incompatibilities
from barnabas.schemas.protobuf.descriptor_reader import read_descriptor
from barnabas.schemas.protobuf.linker import MAIN_FILE, LinkedFiles, link
from barnabas.schemas.protobuf.normalization import UnresolvedTypeError, normalize
from barnabas.schemas.protobuf.parser import parse_text
from barnabas.schemas.protobuf.printer import MAX_BYTES, print_file
from barnabas.schemas.protobuf.syntax import ProtoFile
from barnabas.schemas.protobuf.tokens import describe_offset
from barnabas.schemas.protobuf.type_table import TypeTable, create_table, join_names

MAX_REFERENCES = 1000


def parse(text: str, references: Mapping[str, str]) -> "ProtobufSchema":
    """Parses a schema. `references` has the texts of its imports, direct or not.

    Names are not resolved: `ProtobufSchema.require_resolved` does that.
    """
    if not text.strip():
        raise SchemaError("The schema is empty.")
    if len(text) + sum(map(len, references.values())) > MAX_BYTES:
        raise SchemaError(f"The schema and its references are larger than {MAX_BYTES} bytes.")
    if len(references) > MAX_REFERENCES:
        raise SchemaError(f"The schema has more than {MAX_REFERENCES} references.")
    if MAIN_FILE in references:
        raise SchemaError(f"A reference cannot be named {MAIN_FILE!r}: the schema itself is.")
    files = {name: _parse_reference(name, content) for name, content in references.items()}
    file = _parse_file(text)
    if file == ProtoFile():
        raise SchemaError("The schema is empty: it declares nothing.")
    return ProtobufSchema(text, file, files)


@dataclass(frozen=True, eq=False)
class ProtobufSchema:
    source: str
    """What was parsed. Positions in errors refer to it."""
    file: ProtoFile
    references: Mapping[str, ProtoFile]

    @cached_property
    def text(self) -> str:
        return print_file(self.file)

    @cached_property
    def normalized(self) -> str:
        """Raises SchemaError if a type cannot be resolved."""
        try:
            return print_file(normalize(self.file, self.table))
        except UnresolvedTypeError as error:
            raise self._describe_unresolved(error) from None

    @property
    def resolved(self) -> str:
        return self.text

    @property
    def name(self) -> str | None:
        """The first message, which is the type of a payload without indexes."""
        if not self.file.messages:
            return None
        return join_names(self.file.package, self.file.messages[0].name)

    @property
    def package(self) -> str:
        return self.file.package

    @cached_property
    def table(self) -> TypeTable:
        """The types that the schema can use."""
        return create_table({**self.references, MAIN_FILE: self.file}, bundled_table())

    @cached_property
    def linked(self) -> LinkedFiles:
        """The descriptors of the schema and of the files that it uses. Raises SchemaError."""
        try:
            return link(self.file, self.references, self.table)
        except UnresolvedTypeError as error:
            raise self._describe_unresolved(error) from None

    @property
    def serialized(self) -> str:
        """The FileDescriptorProto in base64, for `format=serialized`."""
        return base64.standard_b64encode(self.linked.own.SerializeToString()).decode()

    @property
    def descriptor(self) -> FileDescriptor:
        return self.linked.pool.FindFileByName(MAIN_FILE)

    def message(self, name: str) -> Descriptor:
        """Finds a message of the schema or its imports, by full name or name within the package."""
        for candidate in (name.removeprefix("."), join_names(self.package, name)):
            try:
                return self.linked.pool.FindMessageTypeByName(candidate)
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

    def has_top_level_field(self, name: str) -> bool:
        """Returns whether a message of the file has the field."""
        return any(
            field.name == name
            for message in self.file.messages
            for field in (*message.fields, *(one for each in message.oneofs for one in each.fields))
        )

    def require_valid(self) -> None:
        """New schemas have no further rules."""

    def require_resolved(self, *, strict: bool) -> None:
        """Every type must be defined. If `strict`, the schema must make valid descriptors too."""
        _ = self.normalized
        if strict:
            _ = self.linked

    def find_incompatibilities(
        self, written: ParsedSchema, *, lenient: bool = False
    ) -> list[Incompatibility]:
        assert isinstance(written, ProtobufSchema)
        return incompatibilities(written.file, written.table, self.file, self.table)

    def _describe_unresolved(self, error: UnresolvedTypeError) -> SchemaError:
        known = {*self.references, *bundled_files()}
        missing = [name for name in self.file.all_imports() if name not in known]
        hint = f" These imports have no reference: {', '.join(missing)}." if missing else ""
        return SchemaError(f"{describe_offset(self.source, error.offset)}{error}{hint}")


def _parse_reference(name: str, text: str) -> ProtoFile:
    try:
        return _parse_file(text)
    except SchemaError as error:
        raise SchemaError(f"{name}: {error}") from None


def _parse_file(text: str) -> ProtoFile:
    try:
        return parse_text(text)
    except SchemaError:
        descriptor = _descriptor(text)
        if descriptor is None:
            raise
    file = read_descriptor(descriptor)
    _require_printable(file)
    return file


def _require_printable(file: ProtoFile) -> None:
    """Names in a descriptor can be anything. The text of the file must have the same meaning."""
    text = print_file(file)
    try:
        is_same = print_file(parse_text(text)) == text
    except SchemaError as error:
        raise SchemaError(f"The descriptor is not well formed: {error}") from None
    if not is_same:
        raise SchemaError("The descriptor is not well formed: a name is not one.")


def _descriptor(text: str) -> FileDescriptorProto | None:
    try:
        serialized = base64.b64decode(text, validate=True)
        return FileDescriptorProto.FromString(serialized)
    except (binascii.Error, ValueError, DecodeError):
        return None
