"""UnregisterBroker (key 64): remove a broker; forwarded to the controller."""

from barnabas.server.request_context import RequestContext
from barnabas.wire.messages.unregister_broker import (
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
)


async def handle(
    request: UnregisterBrokerRequest, context: RequestContext
) -> UnregisterBrokerResponse:
    response: UnregisterBrokerResponse = await context.broker.controller.forward(request, context)
    return response
