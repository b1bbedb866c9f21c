"""DescribeQuorum (key 55): the leader and the replicas of the metadata log.

v1 fetch and caught-up times; v2 directory ids, the voters' listeners and error messages. It is
forwarded to the leader of the quorum.
"""

from barnabas.server.request_context import RequestContext
from barnabas.wire.messages.describe_quorum import DescribeQuorumRequest, DescribeQuorumResponse


async def handle(request: DescribeQuorumRequest, context: RequestContext) -> DescribeQuorumResponse:
    response: DescribeQuorumResponse = await context.broker.controller.forward(request, context)
    return response
