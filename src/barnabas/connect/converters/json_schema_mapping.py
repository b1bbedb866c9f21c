"""JSON Schemas as Connect's, and back: Confluent's mapping.

`title` is the name, and what JSON Schema cannot express is in `connect.type`, `connect.index`,
`connect.version` and `connect.parameters`. A value of several types, or of any type, is the text
of its JSON.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import unquote

from barnabas.columns.language import SchemaSource
from barnabas.connect.data.schema import (
    DATE,
    DECIMAL,
    JSON_TEXT,
    SCALE,
    TIME,
    TIMESTAMP,
    ConnectSchema,
    SchemaField,
    Type,
    struct_schema,
)
from barnabas.schemas import SchemaError

ENUM_PARAMETER = "io.confluent.connect.json.Enum"
DRAFT_7 = "http://json-schema.org/draft-07/schema#"
MAX_DEPTH = 64
MAX_TYPES = 5000

ANY = ConnectSchema(Type.STRING, is_optional=True, name=JSON_TEXT)

_CONNECT_TYPES = {
    "int8": Type.INT8,
    "int16": Type.INT16,
    "int32": Type.INT32,
    "int64": Type.INT64,
    "float32": Type.FLOAT32,
    "float64": Type.FLOAT64,
    "bytes": Type.BYTES,
}
_LOGICAL = {DECIMAL: Type.BYTES, DATE: Type.INT32, TIME: Type.INT32, TIMESTAMP: Type.INT64}
_JSON_TYPES = {
    Type.INT8: ("integer", "int8"),
    Type.INT16: ("integer", "int16"),
    Type.INT32: ("integer", "int32"),
    Type.INT64: ("integer", "int64"),
    Type.FLOAT32: ("number", "float32"),
    Type.FLOAT64: ("number", "float64"),
    Type.BOOLEAN: ("boolean", None),
    Type.STRING: ("string", None),
    Type.BYTES: ("string", "bytes"),
}

DefaultReader = Callable[[ConnectSchema, Any], Any]


@dataclass(slots=True, frozen=True)
class JsonSchemaMapping:
    """The settings of the mapping."""

    decimals_are_numbers: bool = False
    optional_if_not_required: bool = False
    """Whether a property that is not required is optional."""
    allows_other_properties: bool = True

    def connect_schema(self, source: SchemaSource, read_default: DefaultReader) -> ConnectSchema:
        """Raises SchemaError if the text is not a JSON Schema."""
        declared = _loaded(source.text, "The JSON schema")
        return _JsonSchemaReader(self, source.references, declared, read_default).root()

    def json_text(self, schema: ConnectSchema, default_text: Callable[[ConnectSchema], str]) -> str:
        """Returns the text of a JSON Schema."""
        node = {"$schema": DRAFT_7, **self._node(schema, None, default_text)}
        return json.dumps(node, separators=(",", ":"), ensure_ascii=False)

    def _node(
        self, schema: ConnectSchema, index: int | None, default_text: Callable[[ConnectSchema], str]
    ) -> dict[str, Any]:
        position = {} if index is None else {"connect.index": index}
        if schema.name == JSON_TEXT:
            return position
        present = self._present(schema, default_text) | self._metadata(schema, default_text)
        if not schema.is_optional:
            return {**present, **position}
        return {"oneOf": [{"type": "null"}, present], **position}

    def _present(
        self, schema: ConnectSchema, default_text: Callable[[ConnectSchema], str]
    ) -> dict[str, Any]:
        match schema.type:
            case Type.STRUCT:
                properties = {
                    field.name: self._node(field.schema, index, default_text)
                    for index, field in enumerate(schema.fields)
                }
                node = {"type": "object", "properties": properties}
                return (
                    node
                    if self.allows_other_properties
                    else {
                        **node,
                        "additionalProperties": False,
                    }
                )
            case Type.ARRAY:
                assert schema.value_schema is not None
                items = self._node(schema.value_schema, None, default_text)
                return {"type": "array", "items": items}
            case Type.MAP:
                return self._map(schema, default_text)
            case Type.BYTES if schema.name == DECIMAL and self.decimals_are_numbers:
                return {"type": "number", "connect.type": "bytes"}
            case Type.STRING if ENUM_PARAMETER in schema.parameters:
                prefix = f"{ENUM_PARAMETER}."
                names = [name for name in schema.parameters if name.startswith(prefix)]
                return {"type": "string", "enum": [schema.parameters[name] for name in names]}
        json_type, connect_type = _JSON_TYPES[schema.type]
        return {"type": json_type} | ({"connect.type": connect_type} if connect_type else {})

    def _map(
        self, schema: ConnectSchema, default_text: Callable[[ConnectSchema], str]
    ) -> dict[str, Any]:
        assert schema.key_schema is not None
        assert schema.value_schema is not None
        if schema.key_schema.type is Type.STRING and not schema.key_schema.is_optional:
            values = self._node(schema.value_schema, None, default_text)
            return {"type": "object", "connect.type": "map", "additionalProperties": values}
        properties = {
            "key": self._node(schema.key_schema, 0, default_text),
            "value": self._node(schema.value_schema, 1, default_text),
        }
        items = {"type": "object", "properties": properties}
        return {"type": "array", "connect.type": "map", "items": items}

    def _metadata(
        self, schema: ConnectSchema, default_text: Callable[[ConnectSchema], str]
    ) -> dict[str, Any]:
        node: dict[str, Any] = {}
        if schema.name is not None:
            node["title"] = schema.name
        if schema.version is not None:
            node["connect.version"] = schema.version
        parameters = {
            name: text
            for name, text in schema.parameters.items()
            if not name.startswith(ENUM_PARAMETER)
        }
        if parameters:
            node["connect.parameters"] = parameters
        if schema.doc is not None:
            node["description"] = schema.doc
        if schema.has_default and schema.default is not None:
            node["default"] = json.loads(default_text(schema))
        return node


def document_schema(schema: ConnectSchema) -> ConnectSchema:
    """Returns the schema of documents: a map without strings as keys is a list of entries."""
    if schema.value_schema is None:
        fields = (SchemaField(each.name, document_schema(each.schema)) for each in schema.fields)
        return replace(schema, fields=tuple(fields))
    values = document_schema(schema.value_schema)
    key = schema.key_schema
    if key is None or (key.type is Type.STRING and not key.is_optional):
        return replace(schema, value_schema=values)
    entry = struct_schema({"key": document_schema(key), "value": values})
    default = schema.default
    if schema.has_default and default is not None:
        default = [{"key": name, "value": value} for name, value in default]
    return ConnectSchema(Type.ARRAY, schema.is_optional, default=default, value_schema=entry)


class _JsonSchemaReader:
    """Reads a schema with its references. A type within itself is the text of its JSON."""

    def __init__(
        self,
        mapping: JsonSchemaMapping,
        references: Mapping[str, str],
        root: Any,
        read_default: DefaultReader,
    ) -> None:
        self._mapping = mapping
        self._references = references
        self._roots: dict[str, Any] = {"": root}
        self._read_default = read_default
        self._count = 0

    def root(self) -> ConnectSchema:
        return self._schema(self._roots[""], "", ())

    def _schema(self, node: Any, file: str, path: tuple[str, ...]) -> ConnectSchema:
        """`path` has the references that led here."""
        self._count += 1
        if self._count > MAX_TYPES:
            raise SchemaError(f"The schema is more than {MAX_TYPES} types, each where it is used.")
        if not isinstance(node, dict) or len(path) > MAX_DEPTH:
            return ANY
        match node:
            case {"$ref": str(target)}:
                return self._referred(target, file, path)
            case {"oneOf": list(choices)} | {"anyOf": list(choices)}:
                return self._one_of(choices, file, path)
            case {"allOf": [single]} if "type" not in node:
                return self._schema(single, file, (*path, ""))
            case {"type": list(names)}:
                others = [name for name in names if name != "null"]
                if len(others) != 1:
                    return ANY
                schema = self._schema({**node, "type": others[0]}, file, path)
                return schema.as_optional() if len(others) < len(names) else schema
            case {"enum": list(symbols)} if all(isinstance(each, str) for each in symbols):
                parameters = {ENUM_PARAMETER: "", **_symbols(symbols)}
                return self._described(ConnectSchema(Type.STRING, parameters=parameters), node)
            case {"type": str(name)}:
                return self._named(name, node, file, path)
            case {"properties": dict()}:
                return self._object(node, file, path)
        return ANY

    def _named(
        self, name: str, node: dict[str, Any], file: str, path: tuple[str, ...]
    ) -> ConnectSchema:
        connect_type = node.get("connect.type")
        match name:
            case "object":
                return self._object(node, file, path)
            case "array":
                return self._array(node, file, path)
            case "boolean":
                return self._described(ConnectSchema(Type.BOOLEAN), node)
            case "integer" | "number" | "string":
                plain = {"integer": Type.INT64, "number": Type.FLOAT64}.get(name, Type.STRING)
                return self._described(
                    ConnectSchema(_CONNECT_TYPES.get(str(connect_type), plain)), node
                )
        return ANY

    def _object(self, node: dict[str, Any], file: str, path: tuple[str, ...]) -> ConnectSchema:
        properties, others = node.get("properties"), node.get("additionalProperties")
        if isinstance(properties, dict) and properties:
            required = node.get("required")
            names = set(required) if isinstance(required, list) else set()
            fields = [
                SchemaField(name, self._property(inner, name in names, file, path))
                for name, inner in sorted(properties.items(), key=_index)
            ]
            return self._described(ConnectSchema(Type.STRUCT, fields=tuple(fields)), node)
        if isinstance(others, dict):
            values = self._schema(others, file, (*path, ""))
            schema = ConnectSchema(
                Type.MAP, key_schema=ConnectSchema(Type.STRING), value_schema=values
            )
            return self._described(schema, node)
        if others is False:
            return self._described(ConnectSchema(Type.STRUCT), node)
        return ANY

    def _property(
        self, node: Any, is_required: bool, file: str, path: tuple[str, ...]
    ) -> ConnectSchema:
        schema = self._schema(node, file, (*path, ""))
        if self._mapping.optional_if_not_required and not is_required:
            return schema.as_optional()
        return schema

    def _array(self, node: dict[str, Any], file: str, path: tuple[str, ...]) -> ConnectSchema:
        items = node.get("items")
        if node.get("connect.type") == "map" and isinstance(items, dict):
            parts = items.get("properties")
            if isinstance(parts, dict) and parts.keys() == {"key", "value"}:
                key, value = (self._schema(parts[each], file, (*path, "")) for each in parts)
                if next(iter(parts)) == "value":
                    key, value = value, key
                schema = ConnectSchema(Type.MAP, key_schema=key, value_schema=value)
                return self._described(schema, node)
        inner = self._schema(items, file, (*path, "")) if isinstance(items, dict) else ANY
        return self._described(ConnectSchema(Type.ARRAY, value_schema=inner), node)

    def _one_of(self, choices: list[Any], file: str, path: tuple[str, ...]) -> ConnectSchema:
        others = [choice for choice in choices if choice != {"type": "null"}]
        if len(others) != 1:
            return ANY
        schema = self._schema(others[0], file, (*path, ""))
        return schema.as_optional() if len(others) < len(choices) else schema

    def _described(self, schema: ConnectSchema, node: dict[str, Any]) -> ConnectSchema:
        title, version = node.get("title"), node.get("connect.version")
        doc, declared = node.get("description"), node.get("connect.parameters")
        parameters = {**schema.parameters}
        if isinstance(declared, dict):
            parameters |= {name: str(value) for name, value in declared.items()}
        name = title if isinstance(title, str) else None
        if name in _LOGICAL and (
            _LOGICAL[name] is not schema.type
            or (name == DECIMAL and not parameters.get(SCALE, "").lstrip("-").isdigit())
        ):
            name = None
        schema = replace(
            schema,
            name=name,
            version=version if type(version) is int else None,
            doc=doc if isinstance(doc, str) else None,
            parameters=parameters,
        )
        default = node.get("default")
        return (
            schema
            if default is None
            else replace(schema, default=self._read_default(schema, default))
        )

    def _referred(self, target: str, file: str, path: tuple[str, ...]) -> ConnectSchema:
        name, _, pointer = target.partition("#")
        file = name or file
        reference = f"{file}#{pointer}"
        if reference in path:
            return ANY
        node = self._file(file)
        for step in pointer.split("/")[1:]:
            key = unquote(step).replace("~1", "/").replace("~0", "~")
            node = node.get(key) if isinstance(node, dict) else None
        if node is None:
            raise SchemaError(f"The schema refers to {target!r}, which is not defined.")
        return self._schema(node, file, (*path, reference))

    def _file(self, name: str) -> Any:
        if name not in self._roots:
            if name not in self._references:
                raise SchemaError(f"The schema refers to {name!r}, which is not defined.")
            self._roots[name] = _loaded(self._references[name], f"The reference {name!r}")
        return self._roots[name]


def _symbols(symbols: list[str]) -> dict[str, str]:
    return {f"{ENUM_PARAMETER}.{symbol}": symbol for symbol in symbols}


def _index(entry: tuple[str, Any]) -> int:
    """Returns the position of a property: those without one keep their order, at the end."""
    index = entry[1].get("connect.index") if isinstance(entry[1], dict) else None
    return index if type(index) is int else 1 << 31


def _loaded(text: str, description: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SchemaError(f"{description} is not JSON: {error}") from error
