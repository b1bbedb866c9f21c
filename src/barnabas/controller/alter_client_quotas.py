"""AlterClientQuotas (key 49): set and remove the quotas of users, client ids and IP addresses.

An error concerns its entity only. An entity, and a key of it, can be changed once in a request.
"""

from collections import Counter
from collections.abc import Iterable

from barnabas.controller.context import ControllerContext, ControllerDecision, require_record_limit
from barnabas.decision import Decision
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.states import QuotaEntity
from barnabas.security.quotas.entities import require_valid_entity, require_valid_value
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    EntityData,
    OpData,
    ResponseEntryData,
)
from barnabas.wire.messages.metadata_records import ClientQuotaRecord
from barnabas.wire.messages.metadata_records import EntityData as RecordEntityData
from barnabas.wire.schema import Message


def decide(
    request: AlterClientQuotasRequest, image: MetadataImage, context: ControllerContext
) -> ControllerDecision:
    mentions = Counter(_entity(entry.entity) for entry in request.entries)
    records: list[Message] = []
    results = []
    for entry in request.entries:
        result = ResponseEntryData(entity=entry.entity)
        try:
            entity = _require_entity(entry.entity)
            if mentions[entity] > 1:
                raise _invalid("Each entity must appear at most once.")
            records += _changes(entity, entry.ops, image)
        except KafkaError as error:
            result.error_code, result.error_message = error.code, error.message
        results.append(result)
    require_record_limit(records)
    return Decision(
        [] if request.validate_only else records, AlterClientQuotasResponse(entries=results)
    )


def _require_entity(parts: Iterable[EntityData]) -> QuotaEntity:
    try:
        entity = _entity(parts)
        require_valid_entity(entity)
    except ValueError as problem:
        raise _invalid(str(problem)) from None
    return entity


def _entity(parts: Iterable[EntityData]) -> QuotaEntity:
    return tuple(
        sorted(((part.entity_type, part.entity_name) for part in parts), key=lambda part: part[0])
    )


def _changes(entity: QuotaEntity, operations: list[OpData], image: MetadataImage) -> list[Message]:
    """Returns the records of one entity. Raises KafkaError if a quota is invalid."""
    if len({operation.key for operation in operations}) < len(operations):
        raise _invalid("A quota of an entity can be changed once in a request.")
    current = image.quotas.get(entity, {})
    records: list[Message] = []
    for operation in operations:
        if operation.remove:
            if operation.key in current:
                records.append(_record(entity, operation))
            continue
        try:
            require_valid_value(entity, operation.key, operation.value)
        except ValueError as problem:
            raise _invalid(str(problem)) from None
        if current.get(operation.key) != operation.value:
            records.append(_record(entity, operation))
    return records


def _record(entity: QuotaEntity, operation: OpData) -> Message:
    return ClientQuotaRecord(
        entity=[RecordEntityData(entity_type=kind, entity_name=name) for kind, name in entity],
        key=operation.key,
        value=0.0 if operation.remove else operation.value,
        remove=operation.remove,
    )


def _invalid(reason: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, reason)
