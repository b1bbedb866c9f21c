"""Changes of settings. A broker changes its own loggers; the controller changes everything else."""

import re

from barnabas.config import ConfigOperation, ConfigResourceType
from barnabas.config.errors import InvalidConfig, InvalidConfigRequest
from barnabas.config.loggers import set_logger_levels, validate_logger_levels
from barnabas.security.authorizer.model import CLUSTER, AclOperation
from barnabas.server.request_context import RequestContext
from barnabas.server.store_validation import find_store_error
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.configs import (
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
    IncrementalAlterConfigsResponse,
)

INTEGER = re.compile(r"[+-]?[0-9]+")
"""The resource name of a broker, as Java reads a number."""


async def handle(request: AlterConfigsRequest, context: RequestContext) -> AlterConfigsResponse:
    """AlterConfigs (key 33): replace all settings of a resource.

    v1 throttles after the response. Clients use IncrementalAlterConfigs since Kafka 2.3.
    """
    node_id = context.broker.node_id
    responses, forwarded = [], []
    for resource in request.resources:
        error = alter_error(resource.resource_type, resource.resource_name, node_id)
        error = error or await find_store_error(resource, context)
        if error is None:
            forwarded.append(resource)
        else:
            responses.append(resource_response(resource, error))
    if forwarded:
        rest = AlterConfigsRequest(resources=forwarded, validate_only=request.validate_only)
        responses += (await context.broker.controller.forward(rest, context)).responses
    return AlterConfigsResponse(responses=responses)


async def handle_incremental(
    request: IncrementalAlterConfigsRequest, context: RequestContext
) -> IncrementalAlterConfigsResponse:
    """IncrementalAlterConfigs (key 44): set, delete, append to or subtract from single settings.

    v1 is flexible.
    """
    node_id = context.broker.node_id
    responses, forwarded = [], []
    for resource in request.resources:
        error = alter_error(resource.resource_type, resource.resource_name, node_id)
        error = error or await find_store_error(resource, context)
        if error is not None:
            responses.append(resource_response(resource, error))
        elif resource.resource_type == ConfigResourceType.BROKER_LOGGER:
            responses.append(_alter_loggers(resource, request, context))
        else:
            forwarded.append(resource)
    if forwarded:
        rest = IncrementalAlterConfigsRequest(
            resources=forwarded, validate_only=request.validate_only
        )
        responses += (await context.broker.controller.forward(rest, context)).responses
    return IncrementalAlterConfigsResponse(responses=responses)


def _alter_loggers(
    resource: IncrementalAlterConfigsResource,
    request: IncrementalAlterConfigsRequest,
    context: RequestContext,
) -> AlterConfigsResourceResponse:
    try:
        context.require_allowed(AclOperation.ALTER_CONFIGS, CLUSTER)
    except KafkaError as error:
        return resource_response(resource, error)
    return alter_loggers(resource, context.broker.node_id, request.validate_only)


def alter_loggers(
    resource: IncrementalAlterConfigsResource, node_id: int, validate_only: bool
) -> AlterConfigsResourceResponse:
    """Changes the levels of this node's loggers."""
    try:
        levels = _levels(resource, node_id)
        validate_logger_levels(levels)
    except KafkaError as error:
        return resource_response(resource, error)
    except InvalidConfigRequest as error:
        return resource_response(resource, KafkaError(ErrorCode.INVALID_REQUEST, str(error)))
    except InvalidConfig as error:
        return resource_response(resource, KafkaError(ErrorCode.INVALID_CONFIG, str(error)))
    if not validate_only:
        set_logger_levels(levels)
    return resource_response(resource)


def resource_response(
    resource: AlterConfigsResource | IncrementalAlterConfigsResource,
    error: KafkaError | None = None,
) -> AlterConfigsResourceResponse:
    """Returns the response for one resource, which was changed unless there is an error."""
    return AlterConfigsResourceResponse(
        error_code=ErrorCode.NONE if error is None else error.code,
        error_message=None if error is None else error.message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )


def _levels(resource: IncrementalAlterConfigsResource, node_id: int) -> dict[str, str | None]:
    """Returns the new level of every logger, or None to remove its own level."""
    if _node_id(resource.resource_name) != node_id:
        raise _invalid(
            f"Unexpected node id. Expected {node_id}, but received {resource.resource_name}"
        )
    levels: dict[str, str | None] = {}
    for config in resource.configs:
        match config.config_operation:
            case ConfigOperation.SET:
                levels[config.name] = config.value
            case ConfigOperation.DELETE:
                levels[config.name] = None
            case _:
                operation = _OPERATION_NAMES.get(config.config_operation, "UNKNOWN")
                raise _invalid(
                    f"{operation} operation is not allowed for the BROKER_LOGGER resource"
                )
    return levels


_OPERATION_NAMES = {operation.value: operation.name for operation in ConfigOperation}


def alter_error(resource_type: int, name: str, node_id: int) -> KafkaError | None:
    """Returns why this broker does not forward a change to the controller, or None if it does.

    An empty name is the default of all brokers.
    """
    if resource_type != ConfigResourceType.BROKER or not name:
        return None
    try:
        if _node_id(name) != node_id:
            return _invalid(f"Unexpected broker id, expected {node_id}, but received {name}")
    except KafkaError as error:
        return error
    return None


def _node_id(name: str) -> int:
    if not INTEGER.fullmatch(name):
        raise _invalid(f"Node id must be an integer, but it is: {name}")
    return int(name)


def _invalid(reason: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, reason)
