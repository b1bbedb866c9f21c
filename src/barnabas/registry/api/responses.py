"""Answers: JSON, in the content type that was asked for."""

import json
from collections.abc import Sequence
from typing import Any, TypeVar

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from barnabas.registry.api.request_parsing import query_number, state_of
from barnabas.registry.definitions import SchemaDefinition
from barnabas.registry.records import SchemaValue
from barnabas.registry.schema_parser import parse_stored_version
from barnabas.registry.subjects import qualify_reference
from barnabas.schemas import SchemaType

PREFERRED_CONTENT_TYPE = "application/vnd.schemaregistry.v1+json"
_WRITTEN = (PREFERRED_CONTENT_TYPE, "application/vnd.schemaregistry+json", "application/json")


def json_response(request: Request, content: Any, status: int = 200) -> Response:
    return Response(_json(content), status, media_type=negotiate_content_type(request))


def text_response(request: Request, text: str) -> Response:
    """A schema by itself, not inside a JSON string."""
    return Response(text, media_type=negotiate_content_type(request))


def error_response(status: int, error_code: int, message: str) -> Response:
    """Whatever was asked for: who cannot read it still has the status."""
    content = {"error_code": error_code, "message": message}
    return Response(_json(content), status, media_type=PREFERRED_CONTENT_TYPE)


def negotiate_content_type(request: Request) -> str:
    """The best of those that the request accepts; 406 if it accepts none."""
    accept = request.headers.get("accept", "")
    if not accept.strip():
        return PREFERRED_CONTENT_TYPE
    ranges = sorted(map(_media_range, accept.split(",")), key=lambda each: -each[1])
    for wanted, quality in ranges:
        for ours in _WRITTEN:
            if quality > 0 and wanted in (ours, "*/*", "application/*"):
                return ours
    raise HTTPException(406)


def _media_range(text: str) -> tuple[str, float]:
    name, *parameters = (part.strip() for part in text.split(";"))
    quality = next((each[2:] for each in parameters if each.startswith("q=")), "1")
    try:
        return name.lower(), float(quality)
    except ValueError:
        return name.lower(), 0.0


def _json(content: Any) -> str:
    return json.dumps(content, ensure_ascii=False, separators=(",", ":"))


def version_json(value: SchemaValue, text: str | None = None) -> dict[str, Any]:
    """A version of a subject; `text` instead of its own, in another format."""
    told = {"subject": value.subject, "version": value.version, "id": value.id}
    return told | _definition(value.definition, text) | _fate(value)


def registered_json(value: SchemaValue, given: SchemaDefinition) -> dict[str, Any]:
    """What is told to who registered it: the rest too if more than was given is stored."""
    definition = value.definition
    told: dict[str, Any] = {"id": value.id, "version": value.version, "guid": definition.guid}
    if (definition.metadata, definition.rule_set) == (given.metadata, given.rule_set):
        return told
    return told | _definition(definition, None)


def schema_json(definition: SchemaDefinition, text: str | None = None) -> dict[str, Any]:
    """A schema, wherever it is registered."""
    return _definition(definition, text)


def _definition(definition: SchemaDefinition, text: str | None) -> dict[str, Any]:
    fields: dict[str, Any] = {"guid": definition.guid, "schemaType": definition.schema_type}
    if definition.references:
        fields["references"] = [each.to_json() for each in definition.references]
    if definition.metadata is not None:
        fields["metadata"] = definition.metadata.to_json()
    if definition.rule_set is not None:
        fields["ruleSet"] = definition.rule_set.to_json()
    return fields | {"schema": definition.schema if text is None else text}


def _fate(value: SchemaValue) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    if value.timestamp_ms is not None:
        fields["ts"] = value.timestamp_ms
    if value.deleted:
        fields["deleted"] = True
    return fields


def format_schema(request: Request, value: SchemaValue) -> str:
    """As asked for; as it is stored if nothing else was, or if the language has no such form."""
    match request.query_params.get("format", ""), value.definition.schema_type:
        case "serialized", SchemaType.PROTOBUF:
            from barnabas.schemas.protobuf import ProtobufSchema

            message = parse_stored_version(state_of(request), value)
            assert isinstance(message, ProtobufSchema)
            return message.serialized
        case "resolved", SchemaType.AVRO:
            return parse_stored_version(state_of(request), value).resolved
    return value.definition.schema


def with_qualified_references(
    request: Request, value: SchemaValue, told: dict[str, Any]
) -> dict[str, Any]:
    """What is told of it, with the subjects it refers to as any context would name them."""
    if request.query_params.get("referenceFormat") == "qualified":
        for each in told.get("references", ()):
            each["subject"] = qualify_reference(value.subject, each["subject"])
    return told


T = TypeVar("T")
MAX_SCHEMAS = 1_000


def paginate(request: Request, items: Sequence[T], most: int | None = None) -> list[T]:
    start = max(0, query_number(request, "offset", 0))
    limit = query_number(request, "limit", -1)
    most = len(items) if most is None else most
    return list(items[start : start + (limit if 0 < limit <= most else most)])
