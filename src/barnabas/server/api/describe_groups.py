"""DescribeGroups (key 15): the state and the members of classic groups.

v1 throttling; v3 authorized operations; v4 static members; v5 flexible; v6 GROUP_ID_NOT_FOUND for
groups that do not exist, which were Dead before.
"""

from barnabas.server.cluster_view import GROUP_OPERATIONS
from barnabas.server.group_requests import client_of, in_chunks
from barnabas.server.request_context import RequestContext
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse


async def handle(request: DescribeGroupsRequest, context: RequestContext) -> DescribeGroupsResponse:
    coordinator, client = context.broker.groups, client_of(context)
    groups = await in_chunks(request.groups, lambda chunk: coordinator.describe(chunk, client))
    if request.include_authorized_operations:
        for group in groups:
            if group.error_code == ErrorCode.NONE:
                group.authorized_operations = GROUP_OPERATIONS
    return DescribeGroupsResponse(groups=groups)
