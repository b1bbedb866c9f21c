"""OffsetCommit (key 8): commit the offsets of a group.

v2 the first served; v5 without a retention time; v6 leader epochs; v7 static members;
v9 member epochs (KIP-848); v10 topics by id.
"""

from barnabas.server.group_requests import client_of
from barnabas.server.request_context import RequestContext
from barnabas.wire.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse


async def handle(request: OffsetCommitRequest, context: RequestContext) -> OffsetCommitResponse:
    return await context.broker.groups.commit(request, client_of(context))
