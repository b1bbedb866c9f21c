"""ListPartitionReassignments (key 46): the reassignments in progress."""

from barnabas.server.request_context import RequestContext
from barnabas.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)


async def handle(
    request: ListPartitionReassignmentsRequest, context: RequestContext
) -> ListPartitionReassignmentsResponse:
    response: ListPartitionReassignmentsResponse = await context.broker.controller.forward(
        request, context
    )
    return response
