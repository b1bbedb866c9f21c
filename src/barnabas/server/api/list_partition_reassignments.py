"""ListPartitionReassignments (key 46): what is on its way to other replicas."""

from barnabas.server.request_context import Call
from barnabas.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)


async def handle(
    request: ListPartitionReassignmentsRequest, call: Call
) -> ListPartitionReassignmentsResponse:
    response: ListPartitionReassignmentsResponse = await call.broker.controller.forward(
        request, call
    )
    return response
