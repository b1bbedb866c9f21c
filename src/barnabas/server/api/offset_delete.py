"""OffsetDelete (key 47): delete committed offsets of topics without subscribers in the group."""

from barnabas.server.group_requests import client_of
from barnabas.server.request_context import RequestContext
from barnabas.wire.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse


async def handle(request: OffsetDeleteRequest, context: RequestContext) -> OffsetDeleteResponse:
    return await context.broker.groups.delete_offsets(request, client_of(context))
