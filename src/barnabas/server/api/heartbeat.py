"""Heartbeat (key 12): keep a member of a classic group alive, and report rebalances.

v3 static members; v4 flexible.
"""

from barnabas.server.group_requests import client_of
from barnabas.server.request_context import RequestContext
from barnabas.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse


async def handle(request: HeartbeatRequest, context: RequestContext) -> HeartbeatResponse:
    return await context.broker.groups.heartbeat(request, client_of(context))
