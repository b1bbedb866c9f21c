"""DescribeConfigs (key 32) of a controller; see `barnabas.server.api.describe_configs`."""

from barnabas.server.api.describe_configs import describe
from barnabas.server.request_context import RequestContext
from barnabas.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResponse,
)


async def handle(
    request: DescribeConfigsRequest, context: RequestContext
) -> DescribeConfigsResponse:
    return describe(request, context.controller_node)
