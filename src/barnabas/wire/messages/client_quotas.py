"""The APIs of client quotas.

DescribeClientQuotas (key 48): the quotas that match a filter.
v1 flexible.

AlterClientQuotas (key 49): set or remove quotas.
v1 flexible.
"""

from __future__ import annotations

from barnabas.wire.schema import Message, Struct, field, float64, int8, int16, int32, string


class DescribeClientQuotasRequest(
    Message, api_key=48, versions="0-1", flexible="1+", listeners="broker"
):
    components: list[ComponentData] = field()
    strict: bool = field()


class ComponentData(Struct):
    entity_type: string = field()
    match_type: int8 = field()
    match: string | None = field()


class DescribeClientQuotasResponse(Message, api_key=48, versions="0-1", flexible="1+"):
    throttle_time_ms: int32 = field()
    error_code: int16 = field()
    error_message: string | None = field()
    entries: list[EntryData] | None = field()


class EntryData(Struct):
    entity: list[EntityData] = field()
    values: list[ValueData] = field()


class EntityData(Struct):
    entity_type: string = field()
    entity_name: string | None = field()


class ValueData(Struct):
    key: string = field()
    value: float64 = field()


class AlterClientQuotasRequest(
    Message, api_key=49, versions="0-1", flexible="1+", listeners="broker controller"
):
    entries: list[RequestEntryData] = field()
    validate_only: bool = field()


class RequestEntryData(Struct):
    entity: list[EntityData] = field()
    ops: list[OpData] = field()


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
