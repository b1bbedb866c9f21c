"""AlterConfigs (key 33): replace all settings of a resource; decided by the controller.

v1 throttles after answering. IncrementalAlterConfigs is what clients use since Kafka 2.3.
"""

from barnabas.server.config_resources import alter_error
from barnabas.server.request_context import RequestContext
from barnabas.wire.errors import KafkaError
from barnabas.wire.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)


async def handle(request: AlterConfigsRequest, context: RequestContext) -> AlterConfigsResponse:
    node_id = context.broker.node_id
    answered, forwarded = [], []
    for resource in request.resources:
        error = alter_error(resource.resource_type, resource.resource_name, node_id)
        if error is None:
            forwarded.append(resource)
        else:
            answered.append(_refused(resource, error))
    if forwarded:
        asked = AlterConfigsRequest(resources=forwarded, validate_only=request.validate_only)
        answered += (await context.broker.controller.forward(asked, context)).responses
    return AlterConfigsResponse(responses=answered)


def _refused(resource: AlterConfigsResource, error: KafkaError) -> AlterConfigsResourceResponse:
    return AlterConfigsResourceResponse(
        error_code=error.code,
        error_message=error.message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )
