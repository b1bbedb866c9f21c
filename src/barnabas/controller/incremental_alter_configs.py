"""IncrementalAlterConfigs (key 44): sets, deletes, appends to or subtracts from configs."""

from barnabas.config.changes import Operation, apply_operation, find_setting
from barnabas.controller.config_changes import change_resource, change_resources
from barnabas.controller.context import ControllerContext, ControllerDecision, require_record_limit
from barnabas.decision import Decision
from barnabas.metadata.image import MetadataImage
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from barnabas.wire.schema import Message


def decide(
    request: IncrementalAlterConfigsRequest, image: MetadataImage, context: ControllerContext
) -> ControllerDecision:
    def change(resource: AlterConfigsResource) -> list[Message]:
        name = (resource.resource_type, resource.resource_name)
        current = image.config(*name)
        changed: dict[str, str | None] = {}
        for config in resource.configs:
            setting = find_setting(resource.resource_type, config.name)
            changed[config.name] = apply_operation(
                setting, current.get(config.name), _operation(config), config.value
            )
        return change_resource(name, changed, image, context)

    records, responses = change_resources(request.resources, change, AlterConfigsResourceResponse)
    require_record_limit(records)
    response = IncrementalAlterConfigsResponse(responses=responses)
    return Decision([] if request.validate_only else records, response)


def _operation(config: AlterableConfig) -> Operation:
    try:
        return Operation(config.config_operation)
    except ValueError:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"Unknown operation {config.config_operation} for config {config.name}.",
        ) from None
