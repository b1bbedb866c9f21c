"""ElectLeaders (key 43): elect the preferred replicas, or any replicas if that is allowed.

v0 preferred elections only; v1 unclean ones and an error for the whole response.
"""

from barnabas.server.request_context import RequestContext
from barnabas.wire.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse


async def handle(request: ElectLeadersRequest, context: RequestContext) -> ElectLeadersResponse:
    response: ElectLeadersResponse = await context.broker.controller.forward(request, context)
    return response
