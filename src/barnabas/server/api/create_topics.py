"""CreateTopics (key 19): new topics, each with its own error; decided by the controller.

v4 takes -1 for the default partitions and replication factor; v5 answers with the configuration;
v7 answers with topic ids.
"""

from barnabas.server.request_context import Call
from barnabas.wire.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse


async def handle(request: CreateTopicsRequest, call: Call) -> CreateTopicsResponse:
    response: CreateTopicsResponse = await call.broker.controller.forward(request, call)
    return response
