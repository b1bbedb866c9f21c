"""CreatePartitions (key 37): more partitions for topics that exist; decided by the controller.

v1 throttles after answering; v3 may answer THROTTLING_QUOTA_EXCEEDED.
"""

from barnabas.server.request_context import RequestContext
from barnabas.wire.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
)


async def handle(
    request: CreatePartitionsRequest, context: RequestContext
) -> CreatePartitionsResponse:
    response: CreatePartitionsResponse = await context.broker.controller.forward(request, context)
    return response
