"""The settings of a controller and of the cluster, read and changed at a controller."""

from barnabas.config import ConfigResourceType
from barnabas.server.api.alter_configs import alter_loggers
from barnabas.server.api.describe_configs import describe
from barnabas.server.controller_api import controller_requests
from barnabas.server.request_context import RequestContext
from barnabas.wire.error_response import error_response
from barnabas.wire.errors import KafkaError
from barnabas.wire.messages.configs import (
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)


async def describe_configs(
    request: DescribeConfigsRequest, context: RequestContext
) -> DescribeConfigsResponse:
    """DescribeConfigs (key 32); see `barnabas.server.api.describe_configs`."""
    return describe(request, context.controller_node)


async def incremental_alter_configs(
    request: IncrementalAlterConfigsRequest, context: RequestContext
) -> IncrementalAlterConfigsResponse:
    """IncrementalAlterConfigs (key 44): the loggers of this controller, and all other resources."""
    responses, others = [], []
    for resource in request.resources:
        if resource.resource_type == ConfigResourceType.BROKER_LOGGER:
            node_id = context.controller_node.node_id
            responses.append(alter_loggers(resource, node_id, request.validate_only))
        else:
            others.append(resource)
    if others:
        rest = IncrementalAlterConfigsRequest(resources=others, validate_only=request.validate_only)
        try:
            response = await controller_requests.handle(rest, context)
        except KafkaError as error:
            # The loggers have been changed: only the other resources report the error.
            response = error_response(rest, context.api_version, error.code, error.message)
        responses += response.responses
    return IncrementalAlterConfigsResponse(responses=responses)
