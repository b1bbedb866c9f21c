"""DescribeAcls (key 29): the access rules that match a filter.

v1 prefixed patterns; v2 flexible; v3 user resources.
"""

from __future__ import annotations

from barnabas.wire.schema import Message, Struct, field, int8, int16, int32, string


class DescribeAclsRequest(
    Message, api_key=29, versions="1-3", flexible="2+", listeners="broker controller"
):
    resource_type_filter: int8 = field()
    resource_name_filter: string | None = field()
    pattern_type_filter: int8 = field(default=3)
    principal_filter: string | None = field()
    host_filter: string | None = field()
    operation: int8 = field()
    permission_type: int8 = field()


class DescribeAclsResponse(Message, api_key=29, versions="1-3", flexible="2+"):
    throttle_time_ms: int32 = field()
    error_code: int16 = field()
    error_message: string | None = field()
    resources: list[DescribeAclsResource] = field()


class DescribeAclsResource(Struct):
    resource_type: int8 = field()
    resource_name: string = field()
    pattern_type: int8 = field(default=3)
    acls: list[AclDescription] = field()


class AclDescription(Struct):
    principal: string = field()
    host: string = field()
    operation: int8 = field()
    permission_type: int8 = field()
