"""Requests between the nodes of the metadata quorum, and changes of its voters.

Fetch (key 1) of the metadata log, Vote (52), BeginQuorumEpoch (53), EndQuorumEpoch (54),
FetchSnapshot (59), AddRaftVoter (80), RemoveRaftVoter (81), UpdateRaftVoter (82).
"""

from barnabas.raft import QuorumRequest, RequestOrigin
from barnabas.security.authorizer.model import CLUSTER, AclOperation
from barnabas.server.request_context import RequestContext
from barnabas.wire.apis import ApiKey
from barnabas.wire.schema import Message

_OF_ADMINISTRATORS = frozenset({ApiKey.ADD_RAFT_VOTER, ApiKey.REMOVE_RAFT_VOTER})


async def handle(request: QuorumRequest, context: RequestContext) -> Message:
    is_administration = request.API_KEY in _OF_ADMINISTRATORS
    operation = AclOperation.ALTER if is_administration else AclOperation.CLUSTER_ACTION
    context.require_allowed(operation, CLUSTER)
    origin = RequestOrigin(context.api_version, context.listener)
    return await context.controller_node.quorum.handle_request(request, origin)
