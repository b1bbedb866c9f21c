"""The APIs that a broker forwards to the active controller without a check of its own.

AddRaftVoter (key 80)                 v1 may request a response before the voters are committed
AlterClientQuotas (key 49)            v1 flexible
AlterPartitionReassignments (key 45)  v1 may forbid a change of the replication factor (KIP-860)
AlterUserScramCredentials (key 51)    salted passwords, never passwords
CreateAcls (key 30)                   v2 flexible; v3 user resources
CreatePartitions (key 37)             v1 throttles after the response; v3 may return
                                      THROTTLING_QUOTA_EXCEEDED
CreateTopics (key 19)                 v4 takes -1 for the default partitions and replication factor;
                                      v5 returns the configuration; v7 returns topic ids
DeleteAcls (key 31)                   v2 flexible; v3 user resources
DeleteTopics (key 20)                 v1 throttles; v5 error messages; v6 by topic id too
DescribeQuorum (key 55)               v1 fetch and caught-up times; v2 directory ids, the voters'
                                      listeners and error messages
ElectLeaders (key 43)                 v0 preferred elections only; v1 unclean ones and an error for
                                      the whole response
ListPartitionReassignments (key 46)   the reassignments in progress
RemoveRaftVoter (key 81)              remove a voter of the metadata quorum (KIP-853)
UnregisterBroker (key 64)             remove a broker
UpdateFeatures (key 57)               v1 upgrade types and dry runs; v2 one error and no results
"""

from barnabas.server.request_context import RequestContext
from barnabas.wire.schema import Message


async def handle(request: Message, context: RequestContext) -> Message:
    response: Message = await context.broker.controller.forward(request, context)
    return response
