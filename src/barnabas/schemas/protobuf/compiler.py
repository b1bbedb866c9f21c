"""Compiles .proto text to descriptors with protoc, the official compiler.

protoc comes as a library in grpcio-tools. Its command line prints errors to the process's
stderr; the entry used here, the one behind `grpc.protos`, raises them with line and column.
It answers with Python modules, from which only the descriptors are taken: nothing is run.

It reads files, so a temporary directory holds what was given, and nothing else is in reach
but the types that come with the compiler: names that leave the directory are refused.
"""

import ast
import re
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

import grpc_tools
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.message import DecodeError
from grpc_tools import _protoc_compiler

from barnabas.schemas import SchemaError
from barnabas.schemas.protobuf.known import known_to

MAIN = "default"
"""What the schema's own file is called; Confluent's registry calls it so, too."""
MAX_BYTES = 4 * 1024 * 1024
"""Of a schema and its references together."""
MAX_REFERENCES = 1000
MAX_NAME_BYTES = 512
MAX_DEPTH = 100
"""Of braces in braces. The compiler follows those of an option's value with its stack."""

_INCLUDED = Path(grpc_tools.__file__).parent / "_proto"
_EMBEDDED = re.compile(rb"AddSerializedFile\((b'(?:[^'\\]|\\.)*+')\)", re.DOTALL)
_SAYS_SYNTAX = re.compile(r"(?>\s+|//[^\n]*|/\*.*?\*/|;)*+(?:syntax|edition)\b", re.DOTALL)

_BRACKETS = re.compile(
    r"""//[^\n]*|/\*.*?(?:\*/|\Z)|"(?:[^"\\\n]|\\[^\n])*+"?|'(?:[^'\\\n]|\\[^\n])*+'?|[{}<>\[\]]""",
    re.DOTALL,
)
_OPENED_BY = {"}": "{", ">": "<", "]": "["}


def compile_files(text: str, references: Mapping[str, str]) -> list[FileDescriptorProto]:
    """The files of the schema, each after those it imports; the last is its own."""
    if len(text) + sum(map(len, references.values())) > MAX_BYTES:
        raise SchemaError(f"The schema and its references are larger than {MAX_BYTES} bytes.")
    if len(references) > MAX_REFERENCES:
        raise SchemaError(f"The schema has more than {MAX_REFERENCES} references.")
    imported = {**known_to([text, *references.values()]), **references}
    main = MAIN
    while main in imported:
        main += "_"
    with TemporaryDirectory(prefix="barnabas-proto-") as directory:
        for name, content in {**imported, main: text}.items():
            _write(Path(directory), name, content)
        try:
            modules = _protoc_compiler.get_protos(
                main.encode(), [str(_INCLUDED).encode(), directory.encode()]
            )
        except _protoc_compiler.ProtocErrors as raised:
            raise SchemaError(_told(raised, main, text, references)) from None
    files = [_descriptor(module) for _name, module in modules]
    files[-1].name = MAIN
    return files


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
    for found in _BRACKETS.finditer(text):
        token = found[0]
        if token in depths:
            depths[token] += 1
            if depths[token] > MAX_DEPTH:
                line = text.count("\n", 0, found.start()) + 1
                raise SchemaError(f"{name}: line {line}: braces are nested too deep.")
        elif token in _OPENED_BY:
            opened = _OPENED_BY[token]
            depths[opened] = max(depths[opened] - 1, 0)


def _with_syntax(text: str) -> str:
    """protoc warns on stderr about a file that does not say its syntax: say the default."""
    return text if _SAYS_SYNTAX.match(text) else f'syntax = "proto2";\n{text}'


def _told(
    raised: _protoc_compiler.ProtocErrors, main: str, text: str, references: Mapping[str, str]
) -> str:
    told = []
    for error in raised.errors():
        name, message = error.filename.decode(), error.message.decode(errors="replace")
        content = text if name == main else references.get(name, "")
        line = error.line + 1 - (content != _with_syntax(content))
        where = "" if name == main else f"{name}: "
        if error.line >= 0:
            where = f"{where}line {max(line, 1)}, column {error.column + 1}: "
        told.append(where + message)
    return "\n".join(told)


def _descriptor(module: bytes) -> FileDescriptorProto:
    found = _EMBEDDED.search(module)
    if found is None:
        raise SchemaError("protoc answered without a descriptor: is grpcio-tools too new?")
    try:
        return FileDescriptorProto.FromString(ast.literal_eval(found[1].decode("ascii")))
    except (DecodeError, ValueError) as raised:
        raise SchemaError(f"protoc's descriptor cannot be read: {raised}") from None
