"""Heartbeat (key 12): a member of a classic group lives, and hears of rebalances.

v3 static members; v4 flexible.
"""

from barnabas.server.call import Call
from barnabas.server.group_clients import client_of
from barnabas.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse


async def handle(request: HeartbeatRequest, call: Call) -> HeartbeatResponse:
    return await call.broker.groups.heartbeat(request, client_of(call))
