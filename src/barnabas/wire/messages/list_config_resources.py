"""ListConfigResources (key 74): the resources that have settings of their own.

v0 client metrics alone; v1 filter by type.
"""

from __future__ import annotations

from barnabas.wire.schema import Message, Struct, field, int8, int16, int32, string


class ListConfigResourcesRequest(
    Message, api_key=74, versions="0-1", flexible="0+", listeners="broker"
):
    resource_types: list[int8] = field("1+")


class ListConfigResourcesResponse(Message, api_key=74, versions="0-1", flexible="0+"):
    throttle_time_ms: int32 = field()
    error_code: int16 = field()
    config_resources: list[ConfigResource] = field()


class ConfigResource(Struct):
    resource_name: string = field()
    resource_type: int8 = field("1+", default=16, ignorable=True)
