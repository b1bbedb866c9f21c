"""The settings of a controller and of the cluster, read and changed at a controller."""

from collections.abc import Sequence
from typing import TypeVar

from barnabas.config import ConfigResourceType
from barnabas.security.authorizer.model import CLUSTER, AclOperation
from barnabas.server.api.alter_configs import alter_loggers, resource_response
from barnabas.server.api.describe_configs import describe
from barnabas.server.config_authorization import require_config_access
from barnabas.server.controller_api.controller_requests import decide
from barnabas.server.request_context import RequestContext
from barnabas.wire.error_response import error_response
from barnabas.wire.errors import KafkaError
from barnabas.wire.messages.configs import (
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
    IncrementalAlterConfigsResponse,
)

R = TypeVar("R", AlterConfigsResource, IncrementalAlterConfigsResource)


async def describe_configs(
    request: DescribeConfigsRequest, context: RequestContext
) -> DescribeConfigsResponse:
    """DescribeConfigs (key 32); see `barnabas.server.api.describe_configs`."""
    return describe(request, context)


async def alter_configs(
    request: AlterConfigsRequest, context: RequestContext
) -> AlterConfigsResponse:
    """AlterConfigs (key 33); see `barnabas.controller.config_changes`."""
    resources, rejected = _split_by_permission(request.resources, context)
    allowed = AlterConfigsRequest(resources=resources, validate_only=request.validate_only)
    response: AlterConfigsResponse = await decide(allowed, context)
    response.responses += rejected
    return response


async def incremental_alter_configs(
    request: IncrementalAlterConfigsRequest, context: RequestContext
) -> IncrementalAlterConfigsResponse:
    """IncrementalAlterConfigs (key 44): the loggers of this controller, and all other resources."""
    responses, others = [], []
    for resource in request.resources:
        if resource.resource_type == ConfigResourceType.BROKER_LOGGER:
            responses.append(_alter_loggers(resource, request, context))
        else:
            others.append(resource)
    others, rejected = _split_by_permission(others, context)
    responses += rejected
    if others:
        rest = IncrementalAlterConfigsRequest(resources=others, validate_only=request.validate_only)
        try:
            response = await decide(rest, context)
        except KafkaError as error:
            # The loggers have been changed: only the other resources report the error.
            response = error_response(rest, context.api_version, error.code, error.message)
        responses += response.responses
    return IncrementalAlterConfigsResponse(responses=responses)


def _alter_loggers(
    resource: IncrementalAlterConfigsResource,
    request: IncrementalAlterConfigsRequest,
    context: RequestContext,
) -> AlterConfigsResourceResponse:
    try:
        context.require_allowed(AclOperation.CLUSTER_ACTION, CLUSTER)
    except KafkaError as error:
        return resource_response(resource, error)
    return alter_loggers(resource, context.controller_node.node_id, request.validate_only)


def _split_by_permission(
    resources: Sequence[R], context: RequestContext
) -> tuple[list[R], list[AlterConfigsResourceResponse]]:
    """Returns the resources that the client may alter, and the responses for the others."""
    allowed: list[R] = []
    rejected: list[AlterConfigsResourceResponse] = []
    for resource in resources:
        try:
            require_config_access(
                AclOperation.ALTER_CONFIGS, resource.resource_type, resource.resource_name, context
            )
        except KafkaError as error:
            rejected.append(resource_response(resource, error))
        else:
            allowed.append(resource)
    return allowed, rejected
