"""RemoveRaftVoter (key 81): remove a voter of the metadata quorum (KIP-853)."""

from barnabas.server.request_context import RequestContext
from barnabas.wire.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse


async def handle(
    request: RemoveRaftVoterRequest, context: RequestContext
) -> RemoveRaftVoterResponse:
    response: RemoveRaftVoterResponse = await context.broker.controller.forward(request, context)
    return response
