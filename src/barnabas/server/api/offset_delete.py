"""OffsetDelete (key 47): forget offsets that nobody in the group reads on from."""

from barnabas.server.group_requests import client_of
from barnabas.server.request_context import Call
from barnabas.wire.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse


async def handle(request: OffsetDeleteRequest, call: Call) -> OffsetDeleteResponse:
    return await call.broker.groups.delete_offsets(request, client_of(call))
