"""AddRaftVoter (key 80): add a voter to the metadata quorum (KIP-853); its leader decides.

v1 may request a response before the new voters are committed.
"""

from barnabas.server.request_context import RequestContext
from barnabas.wire.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse


async def handle(request: AddRaftVoterRequest, context: RequestContext) -> AddRaftVoterResponse:
    response: AddRaftVoterResponse = await context.broker.controller.forward(request, context)
    return response
