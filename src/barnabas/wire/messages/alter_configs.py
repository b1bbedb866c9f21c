"""AlterConfigs (key 33): replace all settings of a resource.

v2 flexible.
"""

from __future__ import annotations

from barnabas.wire.schema import Message, Struct, field, int8, int16, int32, string


class AlterConfigsRequest(
    Message, api_key=33, versions="0-2", flexible="2+", listeners="broker controller"
):
    resources: list[AlterConfigsResource] = field()
    validate_only: bool = field()


class AlterConfigsResource(Struct):
    resource_type: int8 = field()
    resource_name: string = field()
    configs: list[AlterableConfig] = field()


class AlterableConfig(Struct):
    name: string = field()
    value: string | None = field()


class AlterConfigsResponse(Message, api_key=33, versions="0-2", flexible="2+"):
    throttle_time_ms: int32 = field()
    responses: list[AlterConfigsResourceResponse] = field()


class AlterConfigsResourceResponse(Struct):
    error_code: int16 = field()
    error_message: string | None = field()
    resource_type: int8 = field()
    resource_name: string = field()
