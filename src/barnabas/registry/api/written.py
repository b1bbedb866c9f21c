"""Schemas as answers have them."""

from typing import Any

from barnabas.registry.documents import Definition
from barnabas.registry.records import SchemaValue


def version_json(value: SchemaValue, text: str | None = None) -> dict[str, Any]:
    """A version of a subject; `text` instead of its own, in another format."""
    told = {"subject": value.subject, "version": value.version, "id": value.id}
    return told | _definition(value.definition, text) | _fate(value)


def registered_json(value: SchemaValue, given: Definition) -> dict[str, Any]:
    """What is told to who registered it: the rest too if more than was given is stored."""
    definition = value.definition
    told: dict[str, Any] = {"id": value.id, "version": value.version, "guid": definition.guid}
    if (definition.metadata, definition.rule_set) == (given.metadata, given.rule_set):
        return told
    return told | _definition(definition, None)


def schema_json(definition: Definition, text: str | None = None) -> dict[str, Any]:
    """A schema, wherever it is registered."""
    return _definition(definition, text)


def _definition(definition: Definition, text: str | None) -> dict[str, Any]:
    fields: dict[str, Any] = {"guid": definition.guid, "schemaType": definition.schema_type}
    if definition.references:
        fields["references"] = [each.json() for each in definition.references]
    if definition.metadata is not None:
        fields["metadata"] = definition.metadata.json()
    if definition.rule_set is not None:
        fields["ruleSet"] = definition.rule_set.json()
    return fields | {"schema": definition.schema if text is None else text}


def _fate(value: SchemaValue) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    if value.timestamp_ms is not None:
        fields["ts"] = value.timestamp_ms
    if value.deleted:
        fields["deleted"] = True
    return fields
