"""IncrementalAlterConfigs (key 44): set, delete, append to or subtract from single settings.

A broker's loggers are its own affair and change here; everything else is decided by the
controller. v1 is flexible.
"""

from barnabas.config import Operation, ResourceType
from barnabas.config.errors import InvalidConfig, InvalidConfigRequest
from barnabas.config.loggers import set_logger_levels, validate_logger_levels
from barnabas.server.call import Call
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.incremental_alter_configs import (
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)


async def handle(
    request: IncrementalAlterConfigsRequest, call: Call
) -> IncrementalAlterConfigsResponse:
    loggers = [each for each in request.resources if each.resource_type == _LOGGERS]
    if not loggers:
        response: IncrementalAlterConfigsResponse = await call.broker.controller.handle(request)
        return response
    answered = [
        _alter_loggers(each, call.broker.node_id, request.validate_only) for each in loggers
    ]
    others = [each for each in request.resources if each.resource_type != _LOGGERS]
    if others:
        forwarded = IncrementalAlterConfigsRequest(
            resources=others, validate_only=request.validate_only
        )
        answered += (await call.broker.controller.handle(forwarded)).responses
    return IncrementalAlterConfigsResponse(responses=answered)


_LOGGERS = ResourceType.BROKER_LOGGER


def _alter_loggers(
    resource: AlterConfigsResource, node_id: int, validate_only: bool
) -> AlterConfigsResourceResponse:
    answer = AlterConfigsResourceResponse(
        error_message=None,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )
    try:
        levels = _levels(resource, node_id)
        validate_logger_levels(levels)
    except KafkaError as error:
        answer.error_code, answer.error_message = error.code, error.message
    except InvalidConfigRequest as error:
        answer.error_code, answer.error_message = ErrorCode.INVALID_REQUEST, str(error)
    except InvalidConfig as error:
        answer.error_code, answer.error_message = ErrorCode.INVALID_CONFIG, str(error)
    else:
        if not validate_only:
            set_logger_levels(levels)
    return answer


def _levels(resource: AlterConfigsResource, node_id: int) -> dict[str, str | None]:
    """The level each logger is to have; None for those that lose their own."""
    if resource.resource_name != str(node_id):
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"Loggers of broker {resource.resource_name!r} cannot be changed here: "
            f"this is broker {node_id}.",
        )
    levels: dict[str, str | None] = {}
    for config in resource.configs:
        match config.config_operation:
            case Operation.SET:
                levels[config.name] = config.value
            case Operation.DELETE:
                levels[config.name] = None
            case _:
                raise KafkaError(
                    ErrorCode.INVALID_REQUEST,
                    f"The level of logger {config.name} can be set or deleted, nothing else.",
                )
    return levels
