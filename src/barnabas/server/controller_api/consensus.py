"""What the nodes of the quorum ask each other, and who is to be one of them.

Fetch (key 1) of the metadata log, Vote (52), BeginQuorumEpoch (53), EndQuorumEpoch (54),
FetchSnapshot (59), AddRaftVoter (80), RemoveRaftVoter (81), UpdateRaftVoter (82).
"""

import asyncio
from typing import Any

from barnabas.server.call import Call
from barnabas.wire.apis import ApiKey
from barnabas.wire.schema import Message


async def handle(request: Message, call: Call) -> Any:
    quorum, version = call.controller_node.quorum, call.api_version
    match request.API_KEY:
        case ApiKey.FETCH:
            answer = quorum.fetch(request, version)
            return await answer if isinstance(answer, asyncio.Future) else answer
        case ApiKey.FETCH_SNAPSHOT:
            return quorum.fetch_snapshot(request, version)
        case ApiKey.VOTE:
            return quorum.vote(request, version)
        case ApiKey.BEGIN_QUORUM_EPOCH:
            return quorum.begin_epoch(request, version)
        case ApiKey.END_QUORUM_EPOCH:
            return quorum.end_epoch(request, version)
        case ApiKey.ADD_RAFT_VOTER:
            return await quorum.add_voter(request)
        case ApiKey.REMOVE_RAFT_VOTER:
            return await quorum.remove_voter(request)
        case _:
            return await quorum.update_voter(request)
