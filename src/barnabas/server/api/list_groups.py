"""ListGroups (key 16): the groups that this broker coordinates.

v1 throttling; v3 flexible; v4 states, and a filter by them; v5 types, and a filter by them.
"""

from barnabas.server.group_requests import client_of
from barnabas.server.request_context import RequestContext
from barnabas.wire.messages.list_groups import ListGroupsRequest, ListGroupsResponse


async def handle(request: ListGroupsRequest, context: RequestContext) -> ListGroupsResponse:
    return await context.broker.groups.list(request, client_of(context))
