"""Files that every schema may import without a reference, besides those of the compiler.

Clients do not register them, because Confluent's registry has them.
"""

from collections.abc import Iterable, Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path

_GOOGLE_TYPE = "google/type/"


def bundled_files_for(texts: Iterable[str]) -> Mapping[str, str]:
    """Returns bundled files by name; those of `google/type` only if the texts mention them."""
    return _with_google_types() if any(_GOOGLE_TYPE in text for text in texts) else _CONFLUENT


@cache
def _with_google_types() -> Mapping[str, str]:
    """Adds google.type.Money and others if googleapis-common-protos is installed."""
    package = find_spec("google.type")
    directories = () if package is None else package.submodule_search_locations or ()
    files = (file for directory in directories for file in Path(directory).glob("*.proto"))
    return {**_CONFLUENT, **{f"{_GOOGLE_TYPE}{file.name}": file.read_text() for file in files}}


_META = """
syntax = "proto3";
package confluent;

import "google/protobuf/descriptor.proto";

option go_package = "../confluent";

message Meta {
  string doc = 1;
  map<string, string> params = 2;
  repeated string tags = 3;
  repeated Rule rules = 4;
}

message Rule {
  string name = 1;
  string doc = 2;
  string expr = 3;
  string sql = 4;
}

extend google.protobuf.FileOptions { Meta file_meta = 1088; }
extend google.protobuf.MessageOptions { Meta message_meta = 1088; }
extend google.protobuf.FieldOptions { Meta field_meta = 1088; }
extend google.protobuf.EnumOptions { Meta enum_meta = 1088; }
extend google.protobuf.EnumValueOptions { Meta enum_value_meta = 1088; }
"""

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

_LEGACY_DECIMAL = """
syntax = "proto3";
import public "confluent/type/decimal.proto";
"""

_CONFLUENT = {
    "confluent/meta.proto": _META,
    "confluent/type/decimal.proto": _DECIMAL,
    "confluent/types/decimal.proto": _LEGACY_DECIMAL,
}
