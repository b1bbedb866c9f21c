"""DeleteGroups (key 42): forget groups that nobody is in, and the offsets they committed.

v2 flexible; v3 error messages.
"""

from barnabas.server.call import Call
from barnabas.wire.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse


async def handle(request: DeleteGroupsRequest, call: Call) -> DeleteGroupsResponse:
    return await call.broker.groups.delete(request)
