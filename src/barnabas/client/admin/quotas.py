"""Quotas of users, client ids and addresses: describe, alter."""

from collections.abc import Coroutine, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from barnabas.client.admin.requests import UNSET, AdminRequests, require_list
from barnabas.client.admin.results import Results, error_of
from barnabas.client.errors import KafkaError
from barnabas.wire.messages.client_quotas import (
    AlterClientQuotasRequest,
    ComponentData,
    DescribeClientQuotasRequest,
    EntityData,
    OpData,
    RequestEntryData,
)

_EXACT, _DEFAULT, _ANY = 0, 1, 2

USER, CLIENT_ID, IP = "user", "client-id", "ip"
"""The entity types."""


class ClientQuotaEntity:
    """The entity of a quota: names by entity type; None is the default entity of a type."""

    __slots__ = ("_key", "entries")

    def __init__(self, entries: Mapping[str, str | None]) -> None:
        self.entries = dict(entries)
        self._key = frozenset(self.entries.items())

    def __eq__(self, other: object) -> bool:
        return self._key == other._key if isinstance(other, ClientQuotaEntity) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._key)

    def __repr__(self) -> str:
        return f"ClientQuotaEntity({self.entries})"


@dataclass(slots=True, frozen=True)
class ClientQuotaFilterComponent:
    """Matches entities of a type: one by name, the default one, or all."""

    entity_type: str
    match_type: int
    match: str | None = None

    @classmethod
    def of_entity(cls, entity_type: str, entity_name: str) -> "ClientQuotaFilterComponent":
        return cls(entity_type, _EXACT, entity_name)

    @classmethod
    def of_default_entity(cls, entity_type: str) -> "ClientQuotaFilterComponent":
        return cls(entity_type, _DEFAULT)

    @classmethod
    def of_entity_type(cls, entity_type: str) -> "ClientQuotaFilterComponent":
        return cls(entity_type, _ANY)


@dataclass(slots=True, frozen=True)
class ClientQuotaFilter:
    """Matches entities by every component; if `strict`, only entities without other types."""

    components: tuple[ClientQuotaFilterComponent, ...] = ()
    strict: bool = False

    @classmethod
    def contains(cls, components: Iterable[ClientQuotaFilterComponent]) -> "ClientQuotaFilter":
        return cls(tuple(components))

    @classmethod
    def contains_only(cls, components: Iterable[ClientQuotaFilterComponent]) -> "ClientQuotaFilter":
        return cls(tuple(components), strict=True)

    @classmethod
    def all(cls) -> "ClientQuotaFilter":
        return cls()


@dataclass(slots=True, frozen=True)
class ClientQuotaAlteration:
    """New values of an entity's quotas by name; None removes a quota."""

    entity: ClientQuotaEntity
    ops: dict[str, float | None]


Quotas = dict[ClientQuotaEntity, dict[str, float]]


def describe_client_quotas(
    admin: AdminRequests, quota_filter: ClientQuotaFilter, *, request_timeout: float = UNSET
) -> Coroutine[Any, Any, Quotas]:
    """Returns the quotas of all entities that match the filter, by entity."""
    if not isinstance(quota_filter, ClientQuotaFilter):
        raise TypeError(f"{quota_filter!r} is not a ClientQuotaFilter")
    request = DescribeClientQuotasRequest(
        components=[
            ComponentData(
                entity_type=component.entity_type,
                match_type=component.match_type,
                match=component.match,
            )
            for component in quota_filter.components
        ],
        strict=quota_filter.strict,
    )
    deadline = admin.deadline(request_timeout)

    async def describe() -> Quotas:
        response = await admin.send_to_controller(request, deadline)
        return {
            _entity(entry.entity): {quota.key: quota.value for quota in entry.values}
            for entry in response.entries or ()
        }

    return describe()


def alter_client_quotas(
    admin: AdminRequests,
    alterations: list[ClientQuotaAlteration],
    *,
    validate_only: bool = False,
    request_timeout: float = UNSET,
) -> Coroutine[Any, Any, Results[ClientQuotaEntity, None]]:
    """Sets or removes quotas; results are by entity."""
    require_list("alterations", alterations, ClientQuotaAlteration)
    deadline = admin.deadline(request_timeout)
    by_entity = {alteration.entity: _entry(alteration) for alteration in alterations}

    async def exchange(
        node: int | None, entities: list[ClientQuotaEntity]
    ) -> Mapping[ClientQuotaEntity, KafkaError | None]:
        request = AlterClientQuotasRequest(
            entries=[by_entity[entity] for entity in entities], validate_only=validate_only
        )
        response = await admin.send(request, node, deadline=deadline)
        return {_entity(entry.entity): error_of(entry) for entry in response.entries}

    return admin.route_to_controller(by_entity, exchange, deadline)


def _entry(alteration: ClientQuotaAlteration) -> RequestEntryData:
    return RequestEntryData(
        entity=[
            EntityData(entity_type=kind, entity_name=name)
            for kind, name in alteration.entity.entries.items()
        ],
        ops=[
            OpData(key=key, value=value or 0.0, remove=value is None)
            for key, value in alteration.ops.items()
        ],
    )


def _entity(parts: Iterable[Any]) -> ClientQuotaEntity:
    return ClientQuotaEntity({part.entity_type: part.entity_name for part in parts})
