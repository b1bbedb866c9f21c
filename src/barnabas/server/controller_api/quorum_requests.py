"""Requests between the nodes of the metadata quorum, and changes of its voters.

Fetch (key 1) of the metadata log, Vote (52), BeginQuorumEpoch (53), EndQuorumEpoch (54),
FetchSnapshot (59), AddRaftVoter (80), RemoveRaftVoter (81), UpdateRaftVoter (82).
"""

from barnabas.raft import QuorumRequest
from barnabas.server.request_context import RequestContext
from barnabas.wire.schema import Message


async def handle(request: QuorumRequest, context: RequestContext) -> Message:
    return await context.controller_node.quorum.handle_request(request, context.api_version)
