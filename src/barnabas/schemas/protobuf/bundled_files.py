"""The files that every schema may use without a reference: Google's and Confluent's.

Clients do not register them, because Confluent's registry has them.
"""

from collections.abc import Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from google.protobuf import (
    any_pb2,
    api_pb2,
    descriptor_pb2,
    duration_pb2,
    empty_pb2,
    field_mask_pb2,
    source_context_pb2,
    struct_pb2,
    timestamp_pb2,
    type_pb2,
    wrappers_pb2,
)
from google.protobuf.descriptor_pb2 import FileDescriptorProto

from barnabas.schemas.protobuf.descriptor_options import META_FILE
from barnabas.schemas.protobuf.descriptor_reader import read_descriptor
from barnabas.schemas.protobuf.parser import parse_text
from barnabas.schemas.protobuf.syntax import ProtoFile
from barnabas.schemas.protobuf.type_table import TypeTable, create_table

_GOOGLE = (
    any_pb2,
    api_pb2,
    descriptor_pb2,
    duration_pb2,
    empty_pb2,
    field_mask_pb2,
    source_context_pb2,
    struct_pb2,
    timestamp_pb2,
    type_pb2,
    wrappers_pb2,
)
_DESCRIPTORS = {
    META_FILE.name: META_FILE,
    **{
        module.DESCRIPTOR.name: FileDescriptorProto.FromString(module.DESCRIPTOR.serialized_pb)
        for module in _GOOGLE
    },
}


def bundled_descriptor(name: str) -> FileDescriptorProto | None:
    """Returns the descriptor of a file in `google/protobuf`, or of `confluent/meta.proto`."""
    return _DESCRIPTORS.get(name)


@cache
def bundled_files() -> Mapping[str, ProtoFile]:
    """Has `google/type` if googleapis-common-protos is installed."""
    described = {name: read_descriptor(file) for name, file in _DESCRIPTORS.items()}
    texts = {**_google_types(), **_CONFLUENT_TYPES}
    return {**described, **{name: parse_text(text) for name, text in texts.items()}}


@cache
def bundled_table() -> TypeTable:
    return create_table(bundled_files())


def _google_types() -> dict[str, str]:
    package = find_spec("google.type")
    directories = () if package is None else package.submodule_search_locations or ()
    files = (file for directory in directories for file in Path(directory).glob("*.proto"))
    return {f"google/type/{file.name}": file.read_text() for file in files}


_DECIMAL = """
syntax = "proto3";
package confluent.type;

option go_package = "../confluent/type";

message Decimal {
  bytes value = 1;
  uint32 precision = 2;
  int32 scale = 3;
}
"""

_VARIANT = """
syntax = "proto3";
package confluent.type;

message Variant {
  bytes metadata = 1;
  bytes value = 2;
}
"""

_LEGACY_DECIMAL = """
syntax = "proto3";
import public "confluent/type/decimal.proto";
"""

_CONFLUENT_TYPES = {
    "confluent/type/decimal.proto": _DECIMAL,
    "confluent/type/variant.proto": _VARIANT,
    "confluent/types/decimal.proto": _LEGACY_DECIMAL,
}
