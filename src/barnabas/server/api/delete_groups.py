"""DeleteGroups (key 42): forget groups that nobody is in, and the offsets they committed.

v2 flexible; v3 error messages.
"""

from barnabas.server.group_requests import in_chunks
from barnabas.server.request_context import RequestContext
from barnabas.wire.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse


async def handle(request: DeleteGroupsRequest, context: RequestContext) -> DeleteGroupsResponse:
    names = list(dict.fromkeys(request.groups_names))  # one named twice is answered once
    return DeleteGroupsResponse(results=await in_chunks(names, context.broker.groups.delete))
