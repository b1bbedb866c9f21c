"""AlterConfigs (key 33): replaces all configs of a resource; those not listed are removed."""

from barnabas.controller.config_changes import change_resource, change_resources
from barnabas.controller.context import ControllerContext, ControllerDecision, require_record_limit
from barnabas.decision import Decision
from barnabas.metadata.image import MetadataImage
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)
from barnabas.wire.schema import Message


def decide(
    request: AlterConfigsRequest, image: MetadataImage, context: ControllerContext
) -> ControllerDecision:
    def change(resource: AlterConfigsResource) -> list[Message]:
        for config in resource.configs:
            if config.value is None:
                raise KafkaError(
                    ErrorCode.INVALID_REQUEST, f"Null value not supported for : {config.name}"
                )
        name = (resource.resource_type, resource.resource_name)
        changed: dict[str, str | None] = {config.name: config.value for config in resource.configs}
        for key in image.config(*name):
            changed.setdefault(key, None)
        return change_resource(name, changed, image, context)

    records, responses = change_resources(request.resources, change, AlterConfigsResourceResponse)
    require_record_limit(records)
    response = AlterConfigsResponse(responses=responses)
    return Decision([] if request.validate_only else records, response)
