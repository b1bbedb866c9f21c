"""UpdateFeatures (key 57): change feature levels, such as metadata.version.

v1 upgrade types and dry runs; v2 one error and no results.
"""

from barnabas.server.request_context import RequestContext
from barnabas.wire.messages.update_features import UpdateFeaturesRequest, UpdateFeaturesResponse


async def handle(request: UpdateFeaturesRequest, context: RequestContext) -> UpdateFeaturesResponse:
    response: UpdateFeaturesResponse = await context.broker.controller.forward(request, context)
    return response
