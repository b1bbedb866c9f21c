"""DeleteTopics (key 20): delete topics, and later their files; forwarded to the controller.

v1 throttles; v5 error messages; v6 by topic id too.
"""

from barnabas.server.request_context import RequestContext
from barnabas.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse


async def handle(request: DeleteTopicsRequest, context: RequestContext) -> DeleteTopicsResponse:
    response: DeleteTopicsResponse = await context.broker.controller.forward(request, context)
    return response
