"""ApiVersions (key 18) on a controller's listener; see `barnabas.server.api.api_versions`."""

from barnabas.server.api.api_versions import answer
from barnabas.server.request_context import RequestContext
from barnabas.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse


async def handle(request: ApiVersionsRequest, context: RequestContext) -> ApiVersionsResponse:
    node = context.controller_node
    return answer(request, context, node, node.quorum.kraft_version)
