"""Responses: JSON in the accepted content type, schemas in the requested format, pages."""

import json
from collections.abc import Sequence
from typing import Any, TypeVar

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from barnabas.registry.api.request_parsing import query_number, state_of
from barnabas.registry.definitions import SchemaDefinition
from barnabas.registry.records import SchemaValue
from barnabas.registry.schema_parser import as_registry_error, parse_stored_version
from barnabas.registry.subjects import qualify_reference
from barnabas.schemas import SchemaType

PREFERRED_CONTENT_TYPE = "application/vnd.schemaregistry.v1+json"
_CONTENT_TYPES = (PREFERRED_CONTENT_TYPE, "application/vnd.schemaregistry+json", "application/json")
_WILDCARDS = ("*/*", "application/*", "*")
"""A lone `*` is not in the standard. Java's HTTP client sends it."""


def json_response(request: Request, content: Any, status: int = 200) -> Response:
    return Response(_json(content), status, media_type=negotiate_content_type(request))


def text_response(request: Request, text: str) -> Response:
    """Returns the text of a schema, not as a JSON string."""
    return Response(text, media_type=negotiate_content_type(request))


def error_response(status: int, error_code: int, message: str) -> Response:
    """Ignores the requested content type: a client that cannot read the body has the status."""
    content = {"error_code": error_code, "message": message}
    return Response(_json(content), status, media_type=PREFERRED_CONTENT_TYPE)


def negotiate_content_type(request: Request) -> str:
    """Returns the best content type that the request accepts. Raises HTTP 406 if there is none."""
    accept = request.headers.get("accept", "")
    if not accept.strip():
        return PREFERRED_CONTENT_TYPE
    ranges = sorted(map(_media_range, accept.split(",")), key=lambda media_range: -media_range[1])
    for accepted, quality in ranges:
        for content_type in _CONTENT_TYPES:
            if quality > 0 and accepted in (content_type, *_WILDCARDS):
                return content_type
    raise HTTPException(406)


def _media_range(text: str) -> tuple[str, float]:
    name, *parameters = (part.strip() for part in text.split(";"))
    settings = (item.partition("=") for item in parameters)
    quality = next((value for key, _, value in settings if key.strip().lower() == "q"), "1")
    try:
        return name.lower(), float(quality)
    except ValueError:
        return name.lower(), 0.0


def _json(content: Any) -> str:
    return json.dumps(content, ensure_ascii=False, separators=(",", ":"))


def version_json(value: SchemaValue, text: str | None = None) -> dict[str, Any]:
    """Returns a version of a subject. `text` replaces the stored text."""
    fields = {"subject": value.subject, "version": value.version, "id": value.id}
    return fields | schema_json(value.definition, text) | _record_fields(value)


def registered_json(value: SchemaValue, requested: SchemaDefinition) -> dict[str, Any]:
    """Returns ids, and the whole definition if metadata or rules were added to the request's."""
    definition = value.definition
    fields: dict[str, Any] = {"id": value.id, "version": value.version, "guid": definition.guid}
    if (definition.metadata, definition.rule_set) == (requested.metadata, requested.rule_set):
        return fields
    return fields | schema_json(definition)


def schema_json(definition: SchemaDefinition, text: str | None = None) -> dict[str, Any]:
    """Returns a schema without subject and version. `text` replaces the stored text."""
    fields: dict[str, Any] = {"guid": definition.guid, "schemaType": definition.schema_type}
    if definition.references:
        fields["references"] = [reference.to_json() for reference in definition.references]
    if definition.metadata is not None:
        fields["metadata"] = definition.metadata.to_json()
    if definition.rule_set is not None:
        fields["ruleSet"] = definition.rule_set.to_json()
    return fields | {"schema": definition.schema if text is None else text}


def _record_fields(value: SchemaValue) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    if value.timestamp_ms is not None:
        fields["ts"] = value.timestamp_ms
    if value.deleted:
        fields["deleted"] = True
    return fields


def format_schema(request: Request, value: SchemaValue) -> str:
    """Returns the text in the requested `format`, or as stored if its language has no such format.

    `resolved` for Avro inlines references; `serialized` for Protobuf is a descriptor in base64.
    """
    match request.query_params.get("format", ""), value.definition.schema_type:
        case "serialized", SchemaType.PROTOBUF:
            from barnabas.schemas.protobuf import ProtobufSchema

            message = parse_stored_version(state_of(request), value)
            assert isinstance(message, ProtobufSchema)
            with as_registry_error(value.definition):
                return message.serialized
        case "resolved", SchemaType.AVRO:
            schema = parse_stored_version(state_of(request), value)
            with as_registry_error(value.definition):
                return schema.resolved
    return value.definition.schema


def with_qualified_references(
    request: Request, value: SchemaValue, content: dict[str, Any]
) -> dict[str, Any]:
    """Returns the content with qualified subjects in references if `referenceFormat` says so."""
    if request.query_params.get("referenceFormat") == "qualified":
        for reference in content.get("references", ()):
            reference["subject"] = qualify_reference(value.subject, reference["subject"])
    return content


T = TypeVar("T")
MAX_SCHEMAS = 1_000


def paginate(request: Request, items: Sequence[T], max_items: int | None = None) -> list[T]:
    start = max(0, query_number(request, "offset", 0))
    limit = query_number(request, "limit", -1)
    max_items = len(items) if max_items is None else max_items
    return list(items[start : start + (limit if 0 < limit <= max_items else max_items)])
