"""JoinGroup (key 11): enter a group, and wait until all of it has.

v1 rebalance timeout; v4 a member id must be asked for first (KIP-394); v5 static members;
v7 protocol type; v8 the reason; v9 a leader that need not assign (KIP-814).
"""

from barnabas.server.group_requests import client_of
from barnabas.server.request_context import RequestContext
from barnabas.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse


async def handle(request: JoinGroupRequest, context: RequestContext) -> JoinGroupResponse:
    return await context.broker.groups.join(request, client_of(context))
