"""AlterConfigs (key 33) and IncrementalAlterConfigs (44).

The first replaces all configs of a resource: those not listed are removed. The second sets,
deletes, appends to or subtracts from single configs.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Final, TypeVar

from barnabas.config.changes import (
    ConfigOperation,
    ConfigResourceType,
    apply_operation,
    find_setting,
)
from barnabas.config.errors import InvalidConfig, InvalidConfigRequest
from barnabas.config.validation import validate_client_metrics
from barnabas.controller.context import ControllerContext, ControllerDecision, require_record_limit
from barnabas.controller.topic_names import validate_topic_name
from barnabas.decision import Decision
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.states import ConfigResource
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.configs import (
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
    IncrementalAlterableConfig,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
    IncrementalAlterConfigsResponse,
)
from barnabas.wire.messages.metadata_records import ClearElrRecord, ConfigRecord
from barnabas.wire.schema import Message

_MIN_ISR: Final = "min.insync.replicas"


def decide_alter_configs(
    request: AlterConfigsRequest, image: MetadataImage, context: ControllerContext
) -> ControllerDecision:
    def changed_configs(resource: AlterConfigsResource) -> dict[str, str | None]:
        for config in resource.configs:
            if config.value is None:
                raise _invalid(f"Null value not supported for : {config.name}")
        changed = {config.name: config.value for config in resource.configs}
        for name in image.config(resource.resource_type, resource.resource_name):
            changed.setdefault(name, None)
        return changed

    records, results = _change_resources(request.resources, changed_configs, image, context)
    return Decision(
        [] if request.validate_only else records, AlterConfigsResponse(responses=results)
    )


def decide_incremental_alter_configs(
    request: IncrementalAlterConfigsRequest, image: MetadataImage, context: ControllerContext
) -> ControllerDecision:
    def changed_configs(resource: IncrementalAlterConfigsResource) -> dict[str, str | None]:
        current = image.config(resource.resource_type, resource.resource_name)
        return {
            config.name: apply_operation(
                find_setting(resource.resource_type, config.name),
                current.get(config.name),
                _operation(config),
                config.value,
            )
            for config in resource.configs
        }

    records, results = _change_resources(request.resources, changed_configs, image, context)
    response = IncrementalAlterConfigsResponse(responses=results)
    return Decision([] if request.validate_only else records, response)


def _operation(config: IncrementalAlterableConfig) -> ConfigOperation:
    try:
        return ConfigOperation(config.config_operation)
    except ValueError:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"Unknown operation {config.config_operation} for config {config.name}.",
        ) from None


R = TypeVar("R", AlterConfigsResource, IncrementalAlterConfigsResource)


def _change_resources(
    resources: list[R],
    changed_configs: Callable[[R], dict[str, str | None]],
    image: MetadataImage,
    context: ControllerContext,
) -> tuple[list[Message], list[AlterConfigsResourceResponse]]:
    """Changes resources one by one, each with a result. An error concerns its resource only."""
    mentions = Counter((resource.resource_type, resource.resource_name) for resource in resources)
    records: list[Message] = []
    results = []
    for resource in resources:
        name = resource.resource_type, resource.resource_name
        code: ErrorCode = ErrorCode.NONE
        message: str | None = None
        try:
            if mentions[name] > 1:
                raise _invalid("Each resource must appear at most once.")
            if len({config.name for config in resource.configs}) < len(resource.configs):
                raise _invalid("Error due to duplicate config keys")
            records += _change_resource(name, changed_configs(resource), image, context)
        except KafkaError as error:
            code, message = error.code, error.message
        except InvalidConfig as problem:
            code, message = config_error_code(problem), str(problem)
        results.append(
            AlterConfigsResourceResponse(
                error_code=code,
                error_message=message,
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
            )
        )
    require_record_limit(records)
    return records, results


def _change_resource(
    resource: ConfigResource,
    changed: Mapping[str, str | None],
    image: MetadataImage,
    context: ControllerContext,
) -> list[Message]:
    """Returns the records for `changed` configs; None removes one.

    Raises KafkaError or InvalidConfig if the change is not allowed.
    """
    resource_type, name = resource
    after = dict(image.config(resource_type, name))
    for key, value in changed.items():
        if value is None:
            after.pop(key, None)
        else:
            after[key] = value
    _require_allowed(resource, after, image, context)
    if image.has_eligible_leaders:
        _require_min_isr_stays(resource, changed)
    return config_records(resource, changed, image)


def config_records(
    resource: ConfigResource, changed: Mapping[str, str | None], image: MetadataImage
) -> list[Message]:
    """Returns the records for configs that are valid."""
    resource_type, name = resource
    current = image.config(resource_type, name)
    # A broker gets records without a change, too, to read files that a config names again.
    records: list[Message] = [
        ConfigRecord(resource_type=resource_type, resource_name=name, name=key, value=value)
        for key, value in changed.items()
        if current.get(key) != value or resource_type == ConfigResourceType.BROKER
    ]
    min_isr_changes = changed.get(_MIN_ISR, current.get(_MIN_ISR)) != current.get(_MIN_ISR)
    if image.has_eligible_leaders and min_isr_changes:
        # Replicas that were eligible with the old minimum may not be with the new one (KIP-966).
        topic = name if resource_type == ConfigResourceType.TOPIC else ""
        records.append(ClearElrRecord(topic_name=topic))
    return records


def config_error_code(problem: InvalidConfig) -> ErrorCode:
    is_request = isinstance(problem, InvalidConfigRequest)
    return ErrorCode.INVALID_REQUEST if is_request else ErrorCode.INVALID_CONFIG


def _require_allowed(
    resource: ConfigResource,
    after: Mapping[str, str],
    image: MetadataImage,
    context: ControllerContext,
) -> None:
    resource_type, name = resource
    match resource_type:
        case ConfigResourceType.TOPIC:
            if not name:
                raise _invalid("Default topic resources are not allowed.")
            validate_topic_name(name)
            context.resolver.validate_topic(after)
            if image.topics.by_name(name) is None:
                raise KafkaError(
                    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist."
                )
        case ConfigResourceType.BROKER:
            broker_id = _broker_id(name)
            context.resolver.validate_broker(after, broker_id=broker_id)
            _require_registered(broker_id, image)
        case ConfigResourceType.CLIENT_METRICS:
            if not name:
                raise _invalid("Subscription name can't be empty")
            validate_client_metrics(after)
        case ConfigResourceType.GROUP:
            if not name:
                raise _invalid("Default group resources are not allowed.")
            context.resolver.validate_group(after)
        case _:
            raise _invalid(f"Unknown resource type {resource_type}")


def _require_min_isr_stays(resource: ConfigResource, changed: Mapping[str, str | None]) -> None:
    resource_type, name = resource
    if resource_type != ConfigResourceType.BROKER or _MIN_ISR not in changed:
        return
    if name:
        raise InvalidConfig(f"Broker-level {_MIN_ISR} cannot be altered while ELR is enabled.")
    if changed[_MIN_ISR] is None:
        raise InvalidConfig(f"Cluster-level {_MIN_ISR} cannot be removed while ELR is enabled.")


def _broker_id(name: str) -> int | None:
    if not name:
        return None
    try:
        return int(name)
    except ValueError:
        raise _invalid(f"Node id must be an integer, but it is: {name}") from None


def _require_registered(node_id: int | None, image: MetadataImage) -> None:
    if not (node_id is None or node_id in image.brokers or node_id in image.controllers):
        raise KafkaError(
            ErrorCode.BROKER_ID_NOT_REGISTERED, f"No node with id {node_id} is registered."
        )


def _invalid(reason: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, reason)
