"""DeleteGroups (key 42): delete empty groups and their committed offsets.

v2 flexible; v3 error messages.
"""

from barnabas.server.group_requests import in_chunks
from barnabas.server.request_context import RequestContext
from barnabas.wire.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse


async def handle(request: DeleteGroupsRequest, context: RequestContext) -> DeleteGroupsResponse:
    names = list(dict.fromkeys(request.groups_names))  # a group named twice is returned once
    return DeleteGroupsResponse(results=await in_chunks(names, context.broker.groups.delete))
