"""DescribeConfigs (key 32): the settings of topics, brokers, groups and client metrics.

v1 where a value comes from, and synonyms; v3 types and documentation; v4 flexible.
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
