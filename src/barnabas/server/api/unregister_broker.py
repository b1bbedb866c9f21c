"""UnregisterBroker (key 64): forget a broker that will not come back; decided by the controller."""

from barnabas.server.request_context import Call
from barnabas.wire.messages.unregister_broker import (
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
)


async def handle(request: UnregisterBrokerRequest, call: Call) -> UnregisterBrokerResponse:
    response: UnregisterBrokerResponse = await call.broker.controller.forward(request, call)
    return response
