"""CreatePartitions (key 37): more partitions for topics that exist; decided by the controller.

v1 throttles after answering; v3 may answer THROTTLING_QUOTA_EXCEEDED.
"""

from barnabas.server.request_context import Call
from barnabas.wire.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
)


async def handle(request: CreatePartitionsRequest, call: Call) -> CreatePartitionsResponse:
    response: CreatePartitionsResponse = await call.broker.controller.forward(request, call)
    return response
