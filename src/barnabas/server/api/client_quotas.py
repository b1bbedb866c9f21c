"""DescribeClientQuotas (key 48): the quotas that match a filter. v1 flexible.

All components of a filter must match. A strict filter excludes entities of further types.
"""

from collections.abc import Iterable
from enum import IntEnum

from barnabas.metadata.states import QuotaEntity
from barnabas.security.authorizer.model import CLUSTER, AclOperation
from barnabas.security.quotas.entities import ENTITY_TYPES, IP
from barnabas.server.request_context import RequestContext
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    EntityData,
    EntryData,
    ValueData,
)


class MatchType(IntEnum):
    """Which names of a type a component matches."""

    EXACT = 0
    DEFAULT = 1
    SPECIFIED = 2


Filter = dict[str, str | MatchType | None]
"""The name that an entity must have, by type; SPECIFIED is any name, None is the default."""


async def handle(
    request: DescribeClientQuotasRequest, context: RequestContext
) -> DescribeClientQuotasResponse:
    context.require_allowed(AclOperation.DESCRIBE_CONFIGS, CLUSTER)
    required = _filter(request.components)
    return DescribeClientQuotasResponse(
        entries=[
            EntryData(
                entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in entity],
                values=[ValueData(key=key, value=value) for key, value in values.items()],
            )
            for entity, values in context.broker.image.quotas.items()
            if _matches(entity, required, is_strict=request.strict)
        ]
    )


def _filter(components: Iterable[ComponentData]) -> Filter:
    required: Filter = {}
    for component in components:
        kind = component.entity_type
        if not kind:
            raise _invalid("The entity type of a component is empty.")
        if kind in required:
            raise _invalid(f"Entity type {kind} appears more than once in the filter.")
        if kind not in ENTITY_TYPES:
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"Unknown entity type {kind}.")
        required[kind] = _required_name(component)
    if IP in required and len(required) > 1:
        raise _invalid("An ip cannot be combined with a user or a client-id.")
    return required


def _required_name(component: ComponentData) -> str | MatchType | None:
    match component.match_type, component.match:
        case MatchType.EXACT, str(name):
            return name
        case MatchType.DEFAULT, None:
            return None
        case MatchType.SPECIFIED, None:
            return MatchType.SPECIFIED
    raise _invalid(
        f"Match type {component.match_type} cannot be combined with name {component.match}."
    )


def _matches(entity: QuotaEntity, required: Filter, *, is_strict: bool) -> bool:
    if is_strict and len(entity) != len(required):
        return False
    names = dict(entity)
    return all(
        kind in names and (name is MatchType.SPECIFIED or names[kind] == name)
        for kind, name in required.items()
    )


def _invalid(reason: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, reason)
