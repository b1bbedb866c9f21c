"""Converts options between .proto files and descriptors: the standard ones, and Confluent's.

Other custom options stay in the text of a schema. A descriptor has them as unknown fields, whose
names are lost, and Confluent's registry leaves them out too.
"""

from collections.abc import Iterable
from functools import cache
from typing import Any, TypeVar

from google.protobuf import text_format
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.descriptor_pb2 import DESCRIPTOR, FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from barnabas.schemas import SchemaError
from barnabas.schemas.protobuf.printer import quote
from barnabas.schemas.protobuf.syntax import Options, OptionValue, OptionWord, ProtoOption

_CONFLUENT = "confluent."
META_FILE = text_format.Parse(
    """
    name: "confluent/meta.proto" package: "confluent" syntax: "proto3"
    dependency: "google/protobuf/descriptor.proto"
    options { go_package: "../confluent" }
    message_type {
      name: "Meta"
      field { name: "doc" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL }
      field {
        name: "params" number: 2 type: TYPE_MESSAGE label: LABEL_REPEATED
        type_name: ".confluent.Meta.ParamsEntry"
      }
      field { name: "tags" number: 3 type: TYPE_STRING label: LABEL_REPEATED }
      field {
        name: "rules" number: 4 type: TYPE_MESSAGE label: LABEL_REPEATED
        type_name: ".confluent.Rule"
      }
      nested_type {
        name: "ParamsEntry" options { map_entry: true }
        field { name: "key" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL }
        field { name: "value" number: 2 type: TYPE_STRING label: LABEL_OPTIONAL }
      }
    }
    message_type {
      name: "Rule"
      field { name: "name" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL }
      field { name: "doc" number: 2 type: TYPE_STRING label: LABEL_OPTIONAL }
      field { name: "expr" number: 3 type: TYPE_STRING label: LABEL_OPTIONAL }
      field { name: "sql" number: 4 type: TYPE_STRING label: LABEL_OPTIONAL }
    }
    """,
    FileDescriptorProto(),
)
"""Confluent's options: documentation, tags and rules of every kind of declaration."""
for _extended in ("file", "message", "field", "enum", "enum_value"):
    META_FILE.extension.add(
        name=f"{_extended}_meta",
        number=1088,
        type=FieldDescriptorProto.TYPE_MESSAGE,
        label=FieldDescriptorProto.LABEL_OPTIONAL,
        type_name=".confluent.Meta",
        extendee=f".google.protobuf.{_extended.title().replace('_', '')}Options",
    )

_ORDER = [
    "java_package",
    "java_outer_classname",
    "java_multiple_files",
    "java_generate_equals_and_hash",
    "java_string_check_utf8",
    "optimize_for",
    "go_package",
    "cc_generic_services",
    "java_generic_services",
    "py_generic_services",
    "ctype",
    "packed",
    "jstype",
    "allow_alias",
    "no_standard_descriptor_accessor",
    "deprecated",
    "idempotency_level",
    "map_entry",
    "cc_enable_arenas",
    "objc_class_prefix",
    "csharp_namespace",
    "swift_prefix",
    "php_class_prefix",
    "php_namespace",
    "php_metadata_namespace",
    "ruby_package",
    "debug_redact",
    "retention",
    "targets",
    "edition_defaults",
    "declaration",
    "features",
    "feature_support",
    "verification",
]
"""The order in which Confluent's registry prints options of descriptors. Others come last."""
_POSITIONS = {name: position for position, name in enumerate(_ORDER)}


def read_options(options: Message) -> Options:
    """Returns the options that a descriptor has."""
    if not options.ByteSize():
        return ()
    known = _with_confluent_options(options)
    assigned = sorted(known.ListFields(), key=lambda item: _position(item[0]))
    return tuple(option for field, value in assigned for option in _read_field(field, value))


def _position(field: FieldDescriptor) -> tuple[bool, int]:
    return field.is_extension, _POSITIONS.get(field.name, len(_ORDER))


def _read_field(field: FieldDescriptor, value: Any) -> Iterable[ProtoOption]:
    if field.is_extension:
        if meta := _read_meta(value):
            yield ProtoOption(field.full_name, meta, is_custom=True)
        return
    for one in value if field.is_repeated else [value]:
        yield ProtoOption(field.name, _read_value(field, one))


def _read_value(field: FieldDescriptor, value: Any) -> OptionValue:
    if field.message_type is not None:
        return _read_message(value)
    if field.enum_type is not None:
        known = field.enum_type.values_by_number.get(value)
        return OptionWord(str(value) if known is None else known.name)
    if isinstance(value, bool):
        return OptionWord(str(value).lower())
    if isinstance(value, bytes):
        return value.decode(errors="surrogateescape")
    return value if isinstance(value, str) else OptionWord(str(value), is_number=True)


def _read_message(message: Message) -> dict[str, OptionValue]:
    return {
        field.name: [_read_value(field, one) for one in value]
        if field.is_repeated
        else _read_value(field, value)
        for field, value in message.ListFields()
    }


def _read_meta(meta: Any) -> dict[str, OptionValue]:
    fields = _read_message(meta)
    fields.pop("params", None)
    ordered = {name: fields.pop(name) for name in ("doc",) if name in fields}
    if meta.params:
        ordered["params"] = [_read_parameter(*item) for item in sorted(meta.params.items())]
    return {**ordered, **fields}


def _read_parameter(key: str, value: str) -> OptionValue:
    """Confluent's registry has the value first for the two that it had first."""
    pair: dict[str, OptionValue] = {"key": key, "value": value}
    return dict(reversed(pair.items())) if key in ("precision", "scale") else pair


M = TypeVar("M", bound=Message)


def write_options(options: Options, into: M) -> None:
    """Sets the options of a descriptor. Unknown ones and those of other extensions are left out."""
    lines = [_write_option(option) for option in options if _is_known(option)]
    if not lines:
        return
    message = _options_class(into)()
    try:
        text_format.Merge(
            "\n".join(lines),
            message,
            allow_unknown_field=True,
            allow_unknown_extension=True,
            descriptor_pool=_pool(),
        )
    except text_format.ParseError as raised:
        raise SchemaError(f"An option has an invalid value: {raised}") from None
    into.MergeFromString(message.SerializeToString())


def _is_known(option: ProtoOption) -> bool:
    return not option.is_custom or option.name.removeprefix(".").startswith(_CONFLUENT)


def _write_option(option: ProtoOption) -> str:
    name = f"[{option.name.removeprefix('.')}]" if option.is_custom else option.name
    if isinstance(option.value, ProtoOption):
        return f"{name} {{ {_write_option(option.value)} }}"
    return f"{name}: {_write_value(option.value)}"


def _write_value(value: OptionValue) -> str:
    match value:
        case str():
            return quote(value)
        case OptionWord(text):
            return text
        case list():
            return f"[{', '.join(map(_write_value, value))}]"
        case dict():
            fields = (f"{name}: {_write_value(one)}" for name, one in value.items())
            return f"{{ {' '.join(fields)} }}"
        case ProtoOption():
            return f"{{ {_write_option(value)} }}"


def _with_confluent_options(options: Message) -> Message:
    return _options_class(options).FromString(options.SerializeToString())


def _options_class(options: Message) -> type[Message]:
    described = _pool().FindMessageTypeByName(options.DESCRIPTOR.full_name)
    kind: type[Message] = GetMessageClass(described)
    return kind


@cache
def _pool() -> DescriptorPool:
    """Has the options of descriptors, with Confluent's extensions."""
    pool = DescriptorPool()
    pool.AddSerializedFile(DESCRIPTOR.serialized_pb)
    pool.Add(META_FILE)
    return pool
