"""The APIs of configs.

DescribeConfigs (key 32): the settings of topics, brokers, groups and client metrics.
v1 sources of values, and synonyms; v3 types and documentation; v4 flexible.

AlterConfigs (key 33): replace all settings of a resource.
v2 flexible.

IncrementalAlterConfigs (key 44): set, delete, append to or subtract from single settings.
v1 flexible.

ListConfigResources (key 74): the resources with own settings.
v0 client metrics only; v1 filter by type.
"""

from __future__ import annotations

from barnabas.wire.schema import Message, Struct, field, int8, int16, int32, string


class DescribeConfigsRequest(
    Message, api_key=32, versions="1-4", flexible="4+", listeners="broker controller"
):
    resources: list[DescribeConfigsResource] = field()
    include_synonyms: bool = field()
    include_documentation: bool = field("3+")


class DescribeConfigsResource(Struct):
    resource_type: int8 = field()
    resource_name: string = field()
    configuration_keys: list[string] | None = field()


class DescribeConfigsResponse(Message, api_key=32, versions="1-4", flexible="4+"):
    throttle_time_ms: int32 = field()
    results: list[DescribeConfigsResult] = field()


class DescribeConfigsResult(Struct):
    error_code: int16 = field()
    error_message: string | None = field()
    resource_type: int8 = field()
    resource_name: string = field()
    configs: list[DescribeConfigsResourceResult] = field()


class DescribeConfigsResourceResult(Struct):
    name: string = field()
    value: string | None = field()
    read_only: bool = field()
    config_source: int8 = field(default=-1)
    is_sensitive: bool = field()
    synonyms: list[DescribeConfigsSynonym] = field()
    config_type: int8 = field("3+", ignorable=True)
    documentation: string | None = field("3+", ignorable=True)


class DescribeConfigsSynonym(Struct):
    name: string = field()
    value: string | None = field()
    source: int8 = field()


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


class IncrementalAlterConfigsRequest(
    Message, api_key=44, versions="0-1", flexible="1+", listeners="broker controller"
):
    resources: list[IncrementalAlterConfigsResource] = field()
    validate_only: bool = field()


class IncrementalAlterConfigsResource(Struct):
    resource_type: int8 = field()
    resource_name: string = field()
    configs: list[IncrementalAlterableConfig] = field()


class IncrementalAlterableConfig(Struct):
    name: string = field()
    config_operation: int8 = field()
    value: string | None = field()


class IncrementalAlterConfigsResponse(Message, api_key=44, versions="0-1", flexible="1+"):
    throttle_time_ms: int32 = field()
    responses: list[AlterConfigsResourceResponse] = field()


class ListConfigResourcesRequest(Message, api_key=74, versions="0-1", listeners="broker"):
    resource_types: list[int8] = field("1+")


class ListConfigResourcesResponse(Message, api_key=74, versions="0-1"):
    throttle_time_ms: int32 = field()
    error_code: int16 = field()
    config_resources: list[ConfigResource] = field()


class ConfigResource(Struct):
    resource_name: string = field()
    resource_type: int8 = field("1+", default=16, ignorable=True)
