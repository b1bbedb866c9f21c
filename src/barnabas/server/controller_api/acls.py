"""The APIs of ACLs at a controller."""

from barnabas.security.authorizer.model import CLUSTER, AclOperation
from barnabas.server.api import describe_acls as broker_api
from barnabas.server.controller_api.controller_requests import decide
from barnabas.server.request_context import RequestContext
from barnabas.wire.messages.acls import (
    CreateAclsRequest,
    CreateAclsResponse,
    DeleteAclsRequest,
    DeleteAclsResponse,
    DescribeAclsRequest,
    DescribeAclsResponse,
)


async def describe_acls(
    request: DescribeAclsRequest, context: RequestContext
) -> DescribeAclsResponse:
    """DescribeAcls (key 29); see `barnabas.server.api.describe_acls`."""
    return await broker_api.handle(request, context)


async def change_acls(
    request: CreateAclsRequest | DeleteAclsRequest, context: RequestContext
) -> CreateAclsResponse | DeleteAclsResponse:
    """CreateAcls (key 30) and DeleteAcls (key 31)."""
    context.require_allowed(AclOperation.ALTER, CLUSTER)
    broker_api.require_acls(context)
    response: CreateAclsResponse | DeleteAclsResponse = await decide(request, context)
    return response
