"""DescribeQuorum (key 55): who leads the metadata log, and how far every replica of it has come.

v1 fetch and caught-up times; v2 directory ids, the voters' listeners and error messages. The leader
of the quorum knows.
"""

from barnabas.server.request_context import RequestContext
from barnabas.wire.messages.describe_quorum import DescribeQuorumRequest, DescribeQuorumResponse


async def handle(request: DescribeQuorumRequest, context: RequestContext) -> DescribeQuorumResponse:
    response: DescribeQuorumResponse = await context.broker.controller.forward(request, context)
    return response
