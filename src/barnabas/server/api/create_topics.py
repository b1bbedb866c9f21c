"""CreateTopics (key 19): create topics, each with its own error; forwarded to the controller.

v4 takes -1 for the default partitions and replication factor; v5 returns the configuration;
v7 returns topic ids.
"""

from barnabas.server.request_context import RequestContext
from barnabas.wire.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse


async def handle(request: CreateTopicsRequest, context: RequestContext) -> CreateTopicsResponse:
    response: CreateTopicsResponse = await context.broker.controller.forward(request, context)
    return response
