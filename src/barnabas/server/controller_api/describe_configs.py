"""DescribeConfigs (key 32) of a controller; see `barnabas.server.api.describe_configs`."""

from barnabas.server.api.describe_configs import describe
from barnabas.server.request_context import Call
from barnabas.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResponse,
)


async def handle(request: DescribeConfigsRequest, call: Call) -> DescribeConfigsResponse:
    return describe(request, call.controller_node)
