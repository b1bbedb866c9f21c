"""LeaveGroup (key 13): remove members from a group.

v3 several members at once, static ones by their instance id; v5 the reason.
"""

from barnabas.server.group_requests import client_of
from barnabas.server.request_context import RequestContext
from barnabas.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse


async def handle(request: LeaveGroupRequest, context: RequestContext) -> LeaveGroupResponse:
    return await context.broker.groups.leave(request, client_of(context))
