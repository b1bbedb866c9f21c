"""DescribeConfigs (key 32): the settings of topics, brokers, groups and client metrics.

v1 the sources of values, and synonyms; v3 types and documentation; v4 flexible.
"""

from barnabas.config import ConfigResourceType
from barnabas.config.descriptions import (
    DescribedSetting,
    SettingSource,
    describe_broker,
    describe_client_metrics,
    describe_cluster,
    describe_group,
    describe_topic,
)
from barnabas.config.documentation import find_documentation
from barnabas.config.loggers import logger_levels
from barnabas.controller.topic_names import validate_topic_name
from barnabas.security.authorizer.model import AclOperation
from barnabas.server.api.alter_configs import INTEGER
from barnabas.server.config_authorization import require_config_access
from barnabas.server.nodes import BrokerNode, ControllerNode
from barnabas.server.request_context import RequestContext
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)


async def handle(
    request: DescribeConfigsRequest, context: RequestContext
) -> DescribeConfigsResponse:
    return describe(request, context)


def describe(request: DescribeConfigsRequest, context: RequestContext) -> DescribeConfigsResponse:
    """Describes the settings of a broker or a controller, and those in the metadata."""
    for resource in request.resources:
        if resource.resource_type not in _RESOURCE_TYPES:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST, f"Resource type {resource.resource_type} has no settings"
            )
    return DescribeConfigsResponse(
        results=[_result(resource, request, context) for resource in request.resources]
    )


_RESOURCE_TYPES = frozenset(ConfigResourceType)


def _result(
    resource: DescribeConfigsResource,
    request: DescribeConfigsRequest,
    context: RequestContext,
) -> DescribeConfigsResult:
    result = DescribeConfigsResult(
        error_message="", resource_type=resource.resource_type, resource_name=resource.resource_name
    )
    # Both null and an empty list of keys request all settings.
    names = frozenset(resource.configuration_keys or ()) or None
    try:
        require_config_access(
            AclOperation.DESCRIBE_CONFIGS, resource.resource_type, resource.resource_name, context
        )
        described = _describe(resource, names, context.broker)
    except KafkaError as error:
        result.error_code, result.error_message = error.code, error.message
        return result
    result.configs = [_config(config, resource.resource_type, request) for config in described]
    return result


def _describe(
    resource: DescribeConfigsResource,
    names: frozenset[str] | None,
    node: BrokerNode | ControllerNode,
) -> list[DescribedSetting]:
    name = resource.resource_name
    match resource.resource_type:
        case ConfigResourceType.TOPIC:
            _require_topic(name, node)
            return describe_topic(node.resolver, name, names)
        case ConfigResourceType.BROKER:
            if not name:
                return describe_cluster(node.resolver, names)
            _require_this_broker(name, node.node_id, or_else=" or empty string,")
            return describe_broker(node.resolver, names)
        case ConfigResourceType.BROKER_LOGGER:
            _require_name(name, "Broker id")
            _require_this_broker(name, node.node_id)
            return _describe_loggers(names)
        case ConfigResourceType.CLIENT_METRICS:
            _require_name(name, "Client metrics subscription name")
            return describe_client_metrics(node.resolver, name, names)
        case _:
            _require_name(name, "Group name")
            return describe_group(node.resolver, name, names)


def _require_topic(name: str, node: BrokerNode | ControllerNode) -> None:
    if node.image.topics.by_name(name) is not None:
        return
    validate_topic_name(name)
    raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


def _require_name(name: str, what: str) -> None:
    if not name:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"{what} must not be empty")


def _require_this_broker(name: str, node_id: int, or_else: str = "") -> None:
    if not INTEGER.fullmatch(name):
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"Broker id must be an integer, but it is: {name}"
        )
    if int(name) != node_id:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"Unexpected broker id, expected {node_id}{or_else} but received {name}",
        )


def _describe_loggers(names: frozenset[str] | None) -> list[DescribedSetting]:
    return [
        DescribedSetting(
            name=name,
            value=level,
            source=SettingSource.LOGGER,
            synonyms=(),
            type=None,
            read_only=False,
            sensitive=False,
        )
        for name, level in logger_levels().items()
        if names is None or name in names
    ]


def _config(
    described: DescribedSetting, resource_type: int, request: DescribeConfigsRequest
) -> DescribeConfigsResourceResult:
    config = DescribeConfigsResourceResult(
        name=described.name,
        value=described.value,
        read_only=described.read_only,
        config_source=described.source,
        is_sensitive=described.sensitive,
        config_type=described.type or 0,
        documentation=None,
    )
    if request.include_synonyms:
        config.synonyms = [
            DescribeConfigsSynonym(name=synonym.name, value=synonym.value, source=synonym.source)
            for synonym in described.synonyms
        ]
    if request.include_documentation:
        config.documentation = find_documentation(resource_type, described.name)
    return config
