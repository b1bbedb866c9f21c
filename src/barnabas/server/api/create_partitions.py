"""CreatePartitions (key 37): add partitions to topics; forwarded to the controller.

v1 throttles after the response; v3 may return THROTTLING_QUOTA_EXCEEDED.
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
