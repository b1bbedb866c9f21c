"""SyncGroup (key 14): the leader of a classic group sends the assignments, members receive theirs.

v3 static members; v4 flexible; v5 protocol type and name.
"""

from barnabas.server.group_requests import client_of
from barnabas.server.request_context import RequestContext
from barnabas.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse


async def handle(request: SyncGroupRequest, context: RequestContext) -> SyncGroupResponse:
    return await context.broker.groups.sync(request, client_of(context))
