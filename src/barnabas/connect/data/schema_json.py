"""Connect's schemas as JSON documents, as they are in the envelopes of Kafka's JsonConverter."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from barnabas.connect.data.schema import NO_DEFAULT, ConnectSchema, SchemaField, Type
from barnabas.connect.errors import DataError

DefaultReader = Callable[[ConnectSchema, Any], Any]
"""Returns the default of a schema from its JSON. Raises DataError if it does not fit."""


def schema_to_json(
    schema: ConnectSchema, default_text: Callable[[ConnectSchema], str], quote: Callable[[str], str]
) -> str:
    """Returns the document, with its members in the order in which Kafka Connect writes them."""
    return "{" + ",".join(_members(schema, default_text, quote)) + "}"


def _members(
    schema: ConnectSchema, default_text: Callable[[ConnectSchema], str], quote: Callable[[str], str]
) -> list[str]:
    def inner(each: ConnectSchema | None) -> str:
        assert each is not None
        return schema_to_json(each, default_text, quote)

    members = [f'"type":"{schema.type.value}"']
    match schema.type:
        case Type.ARRAY:
            members.append(f'"items":{inner(schema.value_schema)}')
        case Type.MAP:
            members.append(f'"keys":{inner(schema.key_schema)}')
            members.append(f'"values":{inner(schema.value_schema)}')
        case Type.STRUCT:
            fields = (
                "{"
                + ",".join(
                    [*_members(field.schema, default_text, quote), f'"field":{quote(field.name)}']
                )
                + "}"
                for field in schema.fields
            )
            members.append(f'"fields":[{",".join(fields)}]')
    members.append(f'"optional":{"true" if schema.is_optional else "false"}')
    if schema.name is not None:
        members.append(f'"name":{quote(schema.name)}')
    if schema.version is not None:
        members.append(f'"version":{schema.version}')
    if schema.doc is not None:
        members.append(f'"doc":{quote(schema.doc)}')
    if schema.parameters:
        parameters = (f"{quote(name)}:{quote(text)}" for name, text in schema.parameters.items())
        members.append(f'"parameters":{{{",".join(parameters)}}}')
    if schema.has_default and schema.default is not None:
        members.append(f'"default":{default_text(schema)}')
    return members


def schema_from_json(text: str | bytes, read_default: DefaultReader) -> ConnectSchema | None:
    """Returns the schema of a document; None for null. Raises DataError if it is not a schema."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DataError(f"The schema is not JSON: {error}") from None
    try:
        return schema_from_document(document, read_default)
    except RecursionError:
        raise DataError("The schema is nested too deeply") from None


def schema_from_document(document: Any, read_default: DefaultReader) -> ConnectSchema | None:
    if document is None:
        return None
    type_name = document.get("type") if isinstance(document, dict) else None
    if not isinstance(type_name, str):
        raise DataError("Schema must contain 'type' field")
    if type_name not in _TYPES:
        raise DataError(f"Unknown schema type: {type_name}")
    type_ = _TYPES[type_name]
    keys = items = None
    fields: tuple[SchemaField, ...] = ()
    match type_:
        case Type.ARRAY:
            items = _inner(
                document, "items", "Array schema did not specify the element type", read_default
            )
        case Type.MAP:
            keys = _inner(document, "keys", "Map schema did not specify the key type", read_default)
            items = _inner(
                document, "values", "Map schema did not specify the value type", read_default
            )
        case Type.STRUCT:
            fields = _fields(document.get("fields"), read_default)
    name, version, doc = (document.get(each) for each in ("name", "version", "doc"))
    schema = ConnectSchema(
        type_,
        document.get("optional") is True,
        name if isinstance(name, str) else None,
        version if type(version) is int else None,
        doc if isinstance(doc, str) else None,
        NO_DEFAULT,
        _parameters(document.get("parameters")),
        fields,
        items,
        keys,
    )
    return _with_default(schema, document, read_default)


def _with_default(
    schema: ConnectSchema, document: dict[str, Any], read_default: DefaultReader
) -> ConnectSchema:
    from dataclasses import replace

    try:
        schema.arrow_type()
    except (KeyError, ValueError):
        raise DataError(f"The scale of a schema of name {schema.name} is not a number") from None
    default = document.get("default")
    if default is None:
        return schema
    return replace(schema, default=read_default(schema, default))


def _inner(
    document: dict[str, Any], member: str, message: str, read_default: DefaultReader
) -> ConnectSchema:
    schema = schema_from_document(document.get(member), read_default)
    if schema is None:
        raise DataError(message)
    return schema


def _fields(declared: Any, read_default: DefaultReader) -> tuple[SchemaField, ...]:
    if not isinstance(declared, list):
        raise DataError('Struct schema\'s "fields" argument is not an array.')
    fields: dict[str, SchemaField] = {}
    for each in declared:
        name = each.get("field") if isinstance(each, dict) else None
        if not isinstance(name, str):
            raise DataError("Struct schema's field name not specified properly")
        schema = schema_from_document(each, read_default)
        assert schema is not None
        if name in fields:
            raise DataError(f"Cannot create field because of field name duplication {name}")
        fields[name] = SchemaField(name, schema)
    return tuple(fields.values())


def _parameters(declared: Any) -> dict[str, str]:
    if not isinstance(declared, dict):
        return {}
    if not all(isinstance(value, str) for value in declared.values()):
        raise DataError("Schema parameters must have string values.")
    return declared


_TYPES = {type_.value: type_ for type_ in Type}
