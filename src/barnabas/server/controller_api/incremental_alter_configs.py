"""IncrementalAlterConfigs (key 44) of a controller: its own loggers, and all that it decides."""

from barnabas.config import ResourceType
from barnabas.server.api.incremental_alter_configs import alter_loggers
from barnabas.server.controller_api import decided
from barnabas.server.request_context import Call
from barnabas.wire.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)


async def handle(
    request: IncrementalAlterConfigsRequest, call: Call
) -> IncrementalAlterConfigsResponse:
    answered, asked = [], []
    for resource in request.resources:
        if resource.resource_type == ResourceType.BROKER_LOGGER:
            node_id = call.controller_node.node_id
            answered.append(alter_loggers(resource, node_id, request.validate_only))
        else:
            asked.append(resource)
    if asked:
        rest = IncrementalAlterConfigsRequest(resources=asked, validate_only=request.validate_only)
        answered += (await decided.handle(rest, call)).responses
    return IncrementalAlterConfigsResponse(responses=answered)
