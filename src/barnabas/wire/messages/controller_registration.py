"""ControllerRegistration (key 70): a controller announces itself to the active one."""

from __future__ import annotations

from barnabas.wire.schema import Message, Struct, field, int16, int32, string, uint16, uuid


class ControllerRegistrationRequest(
    Message, api_key=70, versions="0", flexible="0+", listeners="controller"
):
    controller_id: int32 = field()
    incarnation_id: uuid = field()
    zk_migration_ready: bool = field()
    listeners: list[Listener] = field()
    features: list[Feature] = field()


class Listener(Struct):
    name: string = field()
    host: string = field()
    port: uint16 = field()
    security_protocol: int16 = field()


class Feature(Struct):
    name: string = field()
    min_supported_version: int16 = field()
    max_supported_version: int16 = field()


class ControllerRegistrationResponse(Message, api_key=70, versions="0", flexible="0+"):
    throttle_time_ms: int32 = field()
    error_code: int16 = field()
    error_message: string | None = field()
