"""Compiles .proto text to descriptors with protoc.

protoc reads files, so a temporary directory holds the schema and its references. protoc can reach
nothing else except the types that come with it: names that leave the directory are rejected.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    FileDescriptorSet,
)

from barnabas.schemas import SchemaError
from barnabas.schemas.protobuf.options import implied_json_name
from barnabas.schemas.protobuf.protoc import run_protoc

MAIN_FILE = "default"
"""The name of the schema's own file, as in Confluent's registry."""
MAX_BYTES = 4 * 1024 * 1024
"""The size of a schema and its references together."""
MAX_REFERENCES = 1000
MAX_NAME_BYTES = 512
MAX_DEPTH = 100
"""Nested braces. The compiler recurses into those of an option's value."""

_STANDARD_TYPES = str(files("grpc_tools") / "_proto")
_ERROR = re.compile(r"(?P<file>.*?):(?:(?P<line>\d+):(?P<column>\d+):)? (?P<message>.*)")
_HAS_SYNTAX = re.compile(r"(?>\s+|//[^\n]*|/\*.*?\*/|;)*+(?:syntax|edition)\b", re.DOTALL)

_BRACKETS = re.compile(
    r"""//[^\n]*|/\*.*?(?:\*/|\Z)|"(?:[^"\\\n]|\\[^\n])*+"?|'(?:[^'\\\n]|\\[^\n])*+'?|[{}<>\[\]]""",
    re.DOTALL,
)
_OPENED_BY = {"}": "{", ">": "<", "]": "["}


def compile_files(text: str, references: Mapping[str, str]) -> list[FileDescriptorProto]:
    """Returns the files of the schema, each after those that it imports. The last is its own."""
    if len(text) + sum(map(len, references.values())) > MAX_BYTES:
        raise SchemaError(f"The schema and its references are larger than {MAX_BYTES} bytes.")
    if len(references) > MAX_REFERENCES:
        raise SchemaError(f"The schema has more than {MAX_REFERENCES} references.")
    imported = {**bundled_files_for([text, *references.values()]), **references}
    main = MAIN_FILE
    while main in imported:
        main += "_"
    with TemporaryDirectory(prefix="barnabas-proto-") as directory:
        for name, content in {**imported, main: text}.items():
            _write(Path(directory), name, content)
        output = Path(directory, ".descriptors")
        result = run_protoc(
            [
                f"-I{_STANDARD_TYPES}",
                f"-I{directory}",
                "--include_imports",
                f"--descriptor_set_out={output}",
                str(Path(directory, main)),
            ]
        )
        if result.status != 0:
            printed = result.errors.replace(f"{directory}/", "")
            raise SchemaError(_describe_errors(printed, main, text, references))
        compiled = list(FileDescriptorSet.FromString(output.read_bytes()).file)
    for file in compiled:
        _remove_implied_json_names(file)
    compiled[-1].name = MAIN_FILE
    return compiled


def _write(directory: Path, name: str, content: str) -> None:
    parts = PurePosixPath(name).parts
    if (
        not parts
        or str(PurePosixPath(name)) != name
        or ".." in parts
        or name.startswith("/")
        or "\\" in name
        or not name.isprintable()
        or len(name.encode(errors="replace")) > MAX_NAME_BYTES
    ):
        raise SchemaError(f"A reference cannot be named {name!r}: name it as the import does.")
    _check_depth(name, content)
    path = directory / name
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(_with_syntax(content).encode())
    except (OSError, UnicodeEncodeError) as raised:  # a/b.proto next to a file called a
        raise SchemaError(f"The reference {name!r} cannot be used: {raised.args[-1]}.") from None


def _check_depth(name: str, text: str) -> None:
    depths = dict.fromkeys("{<[", 0)
    for match in _BRACKETS.finditer(text):
        token = match[0]
        if token in depths:
            depths[token] += 1
            if depths[token] > MAX_DEPTH:
                line = text.count("\n", 0, match.start()) + 1
                raise SchemaError(f"{name}: line {line}: braces are nested too deep.")
        elif token in _OPENED_BY:
            opened = _OPENED_BY[token]
            depths[opened] = max(depths[opened] - 1, 0)


def _with_syntax(text: str) -> str:
    """Adds the default syntax if a file has none: protoc would print a warning."""
    return text if _HAS_SYNTAX.match(text) else f'syntax = "proto2";\n{text}'


def _describe_errors(printed: str, main: str, text: str, references: Mapping[str, str]) -> str:
    described = []
    for line in printed.splitlines():
        error = _ERROR.fullmatch(line)
        if error is None or error["message"].startswith("warning: "):
            continue
        name = error["file"]
        where = "" if name == main else f"{name}: "
        if error["line"]:
            content = text if name == main else references.get(name, "")
            number = int(error["line"]) - (content != _with_syntax(content))
            where = f"{where}line {max(number, 1)}, column {error['column']}: "
        described.append(where + error["message"])
    return "\n".join(described) or printed


def _remove_implied_json_names(file: FileDescriptorProto) -> None:
    """protoc adds them to every field; Confluent's registry has only those that a text states."""
    for field in [*file.extension, *_fields(file.message_type)]:
        if field.json_name == implied_json_name(field.name):
            field.ClearField("json_name")


def _fields(messages: Iterable[DescriptorProto]) -> Iterator[FieldDescriptorProto]:
    for message in messages:
        yield from message.field
        yield from message.extension
        yield from _fields(message.nested_type)


_GOOGLE_TYPE = "google/type/"


def bundled_files_for(texts: Iterable[str]) -> Mapping[str, str]:
    """Returns files that every schema may import without a reference, by name.

    Clients do not register them, because Confluent's registry has them. Those of `google/type` are
    included only if the texts mention them.
    """
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
