"""JoinGroup (key 11): join a classic group, and wait for the other members.

v1 rebalance timeout; v4 a member id must be requested first (KIP-394); v5 static members;
v7 protocol type; v8 the reason; v9 a leader that need not assign partitions (KIP-814).
"""

from barnabas.server.group_requests import client_of
from barnabas.server.request_context import RequestContext
from barnabas.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse


async def handle(request: JoinGroupRequest, context: RequestContext) -> JoinGroupResponse:
    return await context.broker.groups.join(request, client_of(context))
