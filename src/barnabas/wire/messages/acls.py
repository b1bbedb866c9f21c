"""The APIs of access control lists.

DescribeAcls (key 29): the access rules that match a filter.
v1 prefixed patterns; v2 flexible; v3 user resources.

CreateAcls (key 30): add access rules.
v1 prefixed patterns; v2 flexible; v3 user resources.

DeleteAcls (key 31): remove the access rules that match filters.
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


class CreateAclsRequest(
    Message, api_key=30, versions="1-3", flexible="2+", listeners="broker controller"
):
    creations: list[AclCreation] = field()


class AclCreation(Struct):
    resource_type: int8 = field()
    resource_name: string = field()
    resource_pattern_type: int8 = field(default=3)
    principal: string = field()
    host: string = field()
    operation: int8 = field()
    permission_type: int8 = field()


class CreateAclsResponse(Message, api_key=30, versions="1-3", flexible="2+"):
    throttle_time_ms: int32 = field()
    results: list[AclCreationResult] = field()


class AclCreationResult(Struct):
    error_code: int16 = field()
    error_message: string | None = field()


class DeleteAclsRequest(
    Message, api_key=31, versions="1-3", flexible="2+", listeners="broker controller"
):
    filters: list[DeleteAclsFilter] = field()


class DeleteAclsFilter(Struct):
    resource_type_filter: int8 = field()
    resource_name_filter: string | None = field()
    pattern_type_filter: int8 = field(default=3)
    principal_filter: string | None = field()
    host_filter: string | None = field()
    operation: int8 = field()
    permission_type: int8 = field()


class DeleteAclsResponse(Message, api_key=31, versions="1-3", flexible="2+"):
    throttle_time_ms: int32 = field()
    filter_results: list[DeleteAclsFilterResult] = field()


class DeleteAclsFilterResult(Struct):
    error_code: int16 = field()
    error_message: string | None = field()
    matching_acls: list[DeleteAclsMatchingAcl] = field()


class DeleteAclsMatchingAcl(Struct):
    error_code: int16 = field()
    error_message: string | None = field()
    resource_type: int8 = field()
    resource_name: string = field()
    pattern_type: int8 = field(default=3)
    principal: string = field()
    host: string = field()
    operation: int8 = field()
    permission_type: int8 = field()
