"""The APIs that a controller decides, and that need one permission on the cluster."""

from typing import Any, Final

from barnabas.controller.context import Requester
from barnabas.security.authorizer.model import CLUSTER, AclOperation
from barnabas.server.request_context import RequestContext
from barnabas.wire.apis import ApiKey
from barnabas.wire.schema import Message

REQUIRED_OPERATIONS: Final = {
    ApiKey.ELECT_LEADERS: AclOperation.ALTER,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: AclOperation.ALTER,
    ApiKey.LIST_PARTITION_REASSIGNMENTS: AclOperation.DESCRIBE,
    ApiKey.ALTER_CLIENT_QUOTAS: AclOperation.ALTER_CONFIGS,
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: AclOperation.ALTER,
    ApiKey.ALTER_PARTITION: AclOperation.CLUSTER_ACTION,
    ApiKey.UPDATE_FEATURES: AclOperation.ALTER,
    ApiKey.BROKER_REGISTRATION: AclOperation.CLUSTER_ACTION,
    ApiKey.BROKER_HEARTBEAT: AclOperation.CLUSTER_ACTION,
    ApiKey.UNREGISTER_BROKER: AclOperation.ALTER,
    ApiKey.ALLOCATE_PRODUCER_IDS: AclOperation.CLUSTER_ACTION,
    ApiKey.CONTROLLER_REGISTRATION: AclOperation.CLUSTER_ACTION,
    ApiKey.ASSIGN_REPLICAS_TO_DIRS: AclOperation.CLUSTER_ACTION,
}
"""What a client must be allowed to do on the cluster."""


async def handle(request: Message, context: RequestContext) -> Any:
    context.require_allowed(REQUIRED_OPERATIONS[ApiKey(request.API_KEY)], CLUSTER)
    return await decide(request, context)


async def decide(request: Message, context: RequestContext) -> Any:
    """Has the controller decide on a request that is allowed."""
    node = context.controller_node
    mutations = node.quotas.recorded_mutations(request, context)
    response = await node.controller.handle(
        request,
        requester=Requester(context.principal, mutations),
        timeout_ms=getattr(request, "timeout_ms", 0),
    )
    if mutations is not None:
        response.throttle_time_ms = mutations.throttle_time_ms
    return response
