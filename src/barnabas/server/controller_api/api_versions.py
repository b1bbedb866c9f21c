"""ApiVersions (key 18) on a controller's listener; see `barnabas.server.api.api_versions`."""

from barnabas.server.api.api_versions import build_response
from barnabas.server.request_context import RequestContext
from barnabas.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse


async def handle(request: ApiVersionsRequest, context: RequestContext) -> ApiVersionsResponse:
    node = context.controller_node
    return build_response(request, context, node, node.quorum.kraft_version)
