"""AlterPartitionReassignments (key 45): reassign replicas; forwarded to the controller.

v1 may forbid a change of the replication factor (KIP-860).
"""

from barnabas.server.request_context import RequestContext
from barnabas.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
)


async def handle(
    request: AlterPartitionReassignmentsRequest, context: RequestContext
) -> AlterPartitionReassignmentsResponse:
    response: AlterPartitionReassignmentsResponse = await context.broker.controller.forward(
        request, context
    )
    return response
