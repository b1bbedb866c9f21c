"""CreateAcls (key 30): add access rules.

v1 prefixed patterns; v2 flexible; v3 user resources.
"""

from __future__ import annotations

from barnabas.wire.schema import Message, Struct, field, int8, int16, int32, string


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
