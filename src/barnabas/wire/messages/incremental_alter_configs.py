"""IncrementalAlterConfigs (key 44): set, delete, append to or subtract from single settings.

v1 flexible.
"""

from __future__ import annotations

from barnabas.wire.schema import Message, Struct, field, int8, int16, int32, string


class IncrementalAlterConfigsRequest(
    Message, api_key=44, versions="0-1", flexible="1+", listeners="broker controller"
):
    resources: list[AlterConfigsResource] = field()
    validate_only: bool = field()


class AlterConfigsResource(Struct):
    resource_type: int8 = field()
    resource_name: string = field()
    configs: list[AlterableConfig] = field()


class AlterableConfig(Struct):
    name: string = field()
    config_operation: int8 = field()
    value: string | None = field()


class IncrementalAlterConfigsResponse(Message, api_key=44, versions="0-1", flexible="1+"):
    throttle_time_ms: int32 = field()
    responses: list[AlterConfigsResourceResponse] = field()


class AlterConfigsResourceResponse(Struct):
    error_code: int16 = field()
    error_message: string | None = field()
    resource_type: int8 = field()
    resource_name: string = field()
