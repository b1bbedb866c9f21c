"""AddRaftVoter (key 80): one more voter for the metadata quorum (KIP-853); its leader decides.

v1 may want an answer before the new voters are committed.
"""

from barnabas.server.request_context import Call
from barnabas.wire.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse


async def handle(request: AddRaftVoterRequest, call: Call) -> AddRaftVoterResponse:
    response: AddRaftVoterResponse = await call.broker.controller.forward(request, call)
    return response
