"""AlterConfigs (key 33): replace all settings of a resource; forwarded to the controller.

v1 throttles after the response. Clients use IncrementalAlterConfigs since Kafka 2.3.
"""

from barnabas.server.config_resources import alter_error
from barnabas.server.request_context import RequestContext
from barnabas.wire.errors import KafkaError
from barnabas.wire.messages.configs import (
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)


async def handle(request: AlterConfigsRequest, context: RequestContext) -> AlterConfigsResponse:
    node_id = context.broker.node_id
    responses, forwarded = [], []
    for resource in request.resources:
        error = alter_error(resource.resource_type, resource.resource_name, node_id)
        if error is None:
            forwarded.append(resource)
        else:
            responses.append(_error_response(resource, error))
    if forwarded:
        rest = AlterConfigsRequest(resources=forwarded, validate_only=request.validate_only)
        responses += (await context.broker.controller.forward(rest, context)).responses
    return AlterConfigsResponse(responses=responses)


def _error_response(
    resource: AlterConfigsResource, error: KafkaError
) -> AlterConfigsResourceResponse:
    return AlterConfigsResourceResponse(
        error_code=error.code,
        error_message=error.message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )
