"""RemoveRaftVoter (key 81): one voter less in the metadata quorum (KIP-853); its leader decides."""

from barnabas.server.request_context import Call
from barnabas.wire.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse


async def handle(request: RemoveRaftVoterRequest, call: Call) -> RemoveRaftVoterResponse:
    response: RemoveRaftVoterResponse = await call.broker.controller.forward(request, call)
    return response
