"""Associations: which subjects belong to a topic, where a registry keeps that."""

from dataclasses import dataclass

from barnabas.schema_registry.client.json_form import JsonForm
from barnabas.schema_registry.client.schemas import Schema


@dataclass(slots=True, frozen=True)
class Association(JsonForm):
    subject: str | None = None
    guid: str | None = None
    resource_name: str | None = None
    resource_namespace: str | None = None
    resource_id: str | None = None
    resource_type: str | None = None
    association_type: str | None = None
    frozen: bool = False


@dataclass(slots=True)
class AssociationInfo(JsonForm):
    """One in an answer."""

    subject: str | None = None
    association_type: str | None = None
    lifecycle: str | None = None
    frozen: bool = False
    schema: Schema | None = None


@dataclass(slots=True)
class AssociationCreateOrUpdateInfo(JsonForm):
    """One that is asked for."""

    subject: str | None = None
    association_type: str | None = None
    lifecycle: str | None = None
    frozen: bool | None = None
    schema: Schema | None = None
    normalize: bool | None = None


@dataclass(slots=True)
class AssociationCreateOrUpdateRequest(JsonForm):
    resource_name: str | None = None
    resource_namespace: str | None = None
    resource_id: str | None = None
    resource_type: str | None = None
    associations: list[AssociationCreateOrUpdateInfo] | None = None


@dataclass(slots=True)
class AssociationResponse(JsonForm):
    resource_name: str | None = None
    resource_namespace: str | None = None
    resource_id: str | None = None
    resource_type: str | None = None
    associations: list[AssociationInfo] | None = None
