"""ConsumerGroupHeartbeat (key 68): join, follow and leave a group by the consumer protocol.

v0 KIP-848; v1 topics by a pattern, member ids made by the client.
"""

from barnabas.server.group_requests import client_of
from barnabas.server.request_context import RequestContext
from barnabas.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)


async def handle(
    request: ConsumerGroupHeartbeatRequest, context: RequestContext
) -> ConsumerGroupHeartbeatResponse:
    return await context.broker.groups.consumer_heartbeat(request, client_of(context))
