"""ConsumerGroupDescribe (key 69): the state and the members of consumer groups (KIP-848).

v1 whether a member uses the classic protocol.
"""

from barnabas.server.cluster_view import GROUP_OPERATIONS
from barnabas.server.group_requests import client_of, in_chunks
from barnabas.server.request_context import RequestContext
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)


async def handle(
    request: ConsumerGroupDescribeRequest, context: RequestContext
) -> ConsumerGroupDescribeResponse:
    describe, client = context.broker.groups.describe_consumer_groups, client_of(context)
    groups = await in_chunks(request.group_ids, lambda chunk: describe(chunk, client))
    if request.include_authorized_operations:
        for group in groups:
            if group.error_code == ErrorCode.NONE:
                group.authorized_operations = GROUP_OPERATIONS
    return ConsumerGroupDescribeResponse(groups=groups)
