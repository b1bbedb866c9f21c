"""Heartbeat (key 12): a member of a classic group lives, and hears of rebalances.

v3 static members; v4 flexible.
"""

from barnabas.server.group_requests import client_of
from barnabas.server.request_context import RequestContext
from barnabas.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse


async def handle(request: HeartbeatRequest, context: RequestContext) -> HeartbeatResponse:
    return await context.broker.groups.heartbeat(request, client_of(context))
