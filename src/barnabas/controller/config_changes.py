"""Changes of the configs of a resource, for AlterConfigs and IncrementalAlterConfigs."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Protocol, TypeVar

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
from barnabas.wire.messages import configs as alter
from barnabas.wire.messages import configs as incremental
from barnabas.wire.messages.metadata_records import ClearElrRecord, ConfigRecord
from barnabas.wire.schema import Message

_MIN_ISR: Final = "min.insync.replicas"


class ConfigRequestResource(Protocol):
    """A resource in a request of either API."""

    resource_type: int
    resource_name: str
    configs: list[Any]


R = TypeVar("R", bound=ConfigRequestResource)
A = TypeVar("A")


def change_resources(
    resources: list[R],
    change: Callable[[R], list[Message]],
    result_type: Callable[..., A],
) -> tuple[list[Message], list[A]]:
    """Changes resources one by one, each with a result. An error concerns its resource only."""
    mentions = Counter((resource.resource_type, resource.resource_name) for resource in resources)
    records: list[Message] = []
    results = []
    for resource in resources:
        code: ErrorCode = ErrorCode.NONE
        message: str | None = None
        try:
            if mentions[resource.resource_type, resource.resource_name] > 1:
                raise _invalid("Each resource must appear at most once.")
            _require_distinct(config.name for config in resource.configs)
            records += change(resource)
        except KafkaError as error:
            code, message = error.code, error.message
        except InvalidConfig as problem:
            code, message = config_error_code(problem), str(problem)
        results.append(
            result_type(
                error_code=code,
                error_message=message,
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
            )
        )
    return records, results


def change_resource(
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
                raise _invalid("A client metrics subscription needs a name.")
            validate_client_metrics(after)
        case ConfigResourceType.GROUP:
            if not name:
                raise _invalid("Default group resources are not allowed.")
            context.resolver.validate_group(after)
        case _:
            raise _invalid(f"Unknown resource type {resource_type}.")


def _require_min_isr_stays(resource: ConfigResource, changed: Mapping[str, str | None]) -> None:
    resource_type, name = resource
    if resource_type != ConfigResourceType.BROKER or _MIN_ISR not in changed:
        return
    if name:
        raise InvalidConfig(
            f"Broker-level {_MIN_ISR} cannot be altered while eligible leader replicas are on: "
            "set it for the cluster or for a topic."
        )
    if changed[_MIN_ISR] is None:
        raise InvalidConfig(
            f"Cluster-level {_MIN_ISR} cannot be removed while eligible leader replicas are on."
        )


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


def _require_distinct(names: Iterable[str]) -> None:
    if any(count > 1 for count in Counter(names).values()):
        raise _invalid("A config key is listed more than once.")


def _invalid(reason: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, reason)


def decide_alter_configs(
    request: alter.AlterConfigsRequest, image: MetadataImage, context: ControllerContext
) -> ControllerDecision:
    def change(resource: alter.AlterConfigsResource) -> list[Message]:
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

    records, responses = change_resources(
        request.resources, change, alter.AlterConfigsResourceResponse
    )
    require_record_limit(records)
    response = alter.AlterConfigsResponse(responses=responses)
    return Decision([] if request.validate_only else records, response)


def decide_incremental_alter_configs(
    request: incremental.IncrementalAlterConfigsRequest,
    image: MetadataImage,
    context: ControllerContext,
) -> ControllerDecision:
    def change(resource: incremental.IncrementalAlterConfigsResource) -> list[Message]:
        name = (resource.resource_type, resource.resource_name)
        current = image.config(*name)
        changed: dict[str, str | None] = {}
        for config in resource.configs:
            setting = find_setting(resource.resource_type, config.name)
            changed[config.name] = apply_operation(
                setting, current.get(config.name), _operation(config), config.value
            )
        return change_resource(name, changed, image, context)

    records, responses = change_resources(
        request.resources, change, incremental.AlterConfigsResourceResponse
    )
    require_record_limit(records)
    response = incremental.IncrementalAlterConfigsResponse(responses=responses)
    return Decision([] if request.validate_only else records, response)


def _operation(config: incremental.IncrementalAlterableConfig) -> ConfigOperation:
    try:
        return ConfigOperation(config.config_operation)
    except ValueError:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"Unknown operation {config.config_operation} for config {config.name}.",
        ) from None
