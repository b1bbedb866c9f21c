"""Requests between the nodes of the metadata quorum, and changes of its voters.

Fetch (key 1) of the metadata log, Vote (52), BeginQuorumEpoch (53), EndQuorumEpoch (54),
FetchSnapshot (59), AddRaftVoter (80), RemoveRaftVoter (81), UpdateRaftVoter (82).
"""

import asyncio

from barnabas.server.request_context import RequestContext
from barnabas.wire.messages.fetch import FetchRequest
from barnabas.wire.messages.fetch_snapshot import FetchSnapshotRequest
from barnabas.wire.messages.raft_elections import (
    BeginQuorumEpochRequest,
    EndQuorumEpochRequest,
    VoteRequest,
)
from barnabas.wire.messages.raft_voters import (
    AddRaftVoterRequest,
    RemoveRaftVoterRequest,
    UpdateRaftVoterRequest,
)
from barnabas.wire.schema import Message

QuorumRequest = (
    FetchRequest
    | FetchSnapshotRequest
    | VoteRequest
    | BeginQuorumEpochRequest
    | EndQuorumEpochRequest
    | AddRaftVoterRequest
    | RemoveRaftVoterRequest
    | UpdateRaftVoterRequest
)


async def handle(request: QuorumRequest, context: RequestContext) -> Message:
    quorum, version = context.controller_node.quorum, context.api_version
    match request:
        case FetchRequest():
            response = quorum.fetch(request, version)
            return await response if isinstance(response, asyncio.Future) else response
        case FetchSnapshotRequest():
            return quorum.fetch_snapshot(request, version)
        case VoteRequest():
            return quorum.vote(request, version)
        case BeginQuorumEpochRequest():
            return quorum.begin_epoch(request, version)
        case EndQuorumEpochRequest():
            return quorum.end_epoch(request, version)
        case AddRaftVoterRequest():
            return await quorum.add_voter(request)
        case RemoveRaftVoterRequest():
            return await quorum.remove_voter(request)
        case UpdateRaftVoterRequest():
            return await quorum.update_voter(request)
