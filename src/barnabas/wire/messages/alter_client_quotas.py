"""AlterClientQuotas (key 49): set or remove quotas.

v1 flexible.

Structs with the same name in request and response get a prefix where they differ.
"""

from __future__ import annotations

from barnabas.wire.schema import Message, Struct, field, float64, int16, int32, string


class AlterClientQuotasRequest(
    Message, api_key=49, versions="0-1", flexible="1+", listeners="broker controller"
):
    entries: list[RequestEntryData] = field()
    validate_only: bool = field()


class RequestEntryData(Struct):
    entity: list[EntityData] = field()
    ops: list[OpData] = field()


class EntityData(Struct):
    entity_type: string = field()
    entity_name: string | None = field()


class OpData(Struct):
    key: string = field()
    value: float64 = field()
    remove: bool = field()


class AlterClientQuotasResponse(Message, api_key=49, versions="0-1", flexible="1+"):
    throttle_time_ms: int32 = field()
    entries: list[ResponseEntryData] = field()


class ResponseEntryData(Struct):
    error_code: int16 = field()
    error_message: string | None = field()
    entity: list[EntityData] = field()
