"""ConsumerGroupDescribe (key 69): the state and the members of consumer groups (KIP-848).

v1 whether a member speaks the classic protocol.
"""

from barnabas.server.authorized_operations import GROUP_OPERATIONS
from barnabas.server.call import Call
from barnabas.server.group_clients import client_of
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)


async def handle(
    request: ConsumerGroupDescribeRequest, call: Call
) -> ConsumerGroupDescribeResponse:
    coordinator = call.broker.groups
    groups = await coordinator.describe_consumer_groups(request.group_ids, client_of(call))
    if request.include_authorized_operations:
        for group in groups:
            if group.error_code == ErrorCode.NONE:
                group.authorized_operations = GROUP_OPERATIONS
    return ConsumerGroupDescribeResponse(groups=groups)
