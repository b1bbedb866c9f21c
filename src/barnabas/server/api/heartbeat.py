"""Heartbeat (key 12): a member of a classic group lives, and hears of rebalances.

v3 static members; v4 flexible.
"""

from barnabas.server.group_requests import client_of
from barnabas.server.request_context import Call
from barnabas.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse


async def handle(request: HeartbeatRequest, call: Call) -> HeartbeatResponse:
    return await call.broker.groups.heartbeat(request, client_of(call))
