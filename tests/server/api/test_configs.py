"""DescribeConfigs and ListConfigResources respond as Kafka does."""

import logging
from collections.abc import Coroutine
from types import SimpleNamespace
from typing import Any

import pytest
from tests.config.conftest import NODE

from barnabas.config import BrokerSettings, ConfigResolver, ConfigResourceType
from barnabas.metadata.delta import MetadataDelta
from barnabas.metadata.image import MetadataImage
from barnabas.security.authorizer.model import AclOperation
from barnabas.server.api import (
    alter_configs,
    describe_configs,
    list_config_resources,
)
from barnabas.server.request_context import RequestContext
from barnabas.wire.apis import ApiKey
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.configs import (
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    ConfigResource,
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    IncrementalAlterableConfig,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)
from barnabas.wire.messages.metadata_records import (
    ConfigRecord,
    RegisterBrokerRecord,
    TopicRecord,
)

CONFIGS = [
    (ConfigResourceType.TOPIC, "orders", "retention.ms", "1000"),
    (ConfigResourceType.BROKER, "", "message.max.bytes", "5000"),
    (ConfigResourceType.BROKER, "1", "listener.name.plaintext.ssl.key.password", "hunter2"),
    (ConfigResourceType.CLIENT_METRICS, "watch", "metrics", "*"),
    (ConfigResourceType.GROUP, "billing", "consumer.session.timeout.ms", "46000"),
]


@pytest.fixture
def broker() -> SimpleNamespace:
    image = MetadataImage()
    for record in (
        RegisterBrokerRecord(broker_id=1, fenced=False),
        RegisterBrokerRecord(broker_id=2, fenced=True),
        TopicRecord(name="orders", topic_id=bytes(15) + b"\1"),
        TopicRecord(name="plain", topic_id=bytes(15) + b"\2"),
        *(
            ConfigRecord(resource_type=kind, resource_name=owner, name=name, value=value)
            for kind, owner, name, value in CONFIGS
        ),
    ):
        image.apply(record, MetadataDelta())
    resolver = ConfigResolver(BrokerSettings.from_properties(NODE), image.configs)
    return SimpleNamespace(
        node_id=1, image=image, resolver=resolver, authorizer=None, store_validator=None
    )


def context_of(broker: SimpleNamespace, version: int) -> RequestContext:
    nothing: Any = None
    return RequestContext(ApiKey.DESCRIBE_CONFIGS, version, 1, "c", nothing, broker, 0, 0)


def result_of(coroutine: Coroutine[Any, None, Any]) -> Any:
    """Returns the response of a handler that awaits nothing."""
    with pytest.raises(StopIteration) as done:
        coroutine.send(None)
    return done.value.value


def describe(
    broker: SimpleNamespace,
    kind: int,
    name: str,
    keys: list[str] | None = None,
    **options: bool,
) -> DescribeConfigsResult:
    request = DescribeConfigsRequest(
        resources=[
            DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=keys)
        ],
        **options,
    )
    context = context_of(broker, 4)
    response = result_of(describe_configs.handle(request, context))
    for version in range(1, 5):
        DescribeConfigsResponse.read(response.write(version), version)
    result: DescribeConfigsResult = response.results[0]
    assert (result.resource_type, result.resource_name) == (kind, name)
    return result


def test_the_settings_of_a_topic_have_sources_and_types(broker: SimpleNamespace) -> None:
    result = describe(
        broker, ConfigResourceType.TOPIC, "orders", ["retention.ms", "no.such.setting"]
    )
    (retention,) = result.configs
    assert (result.error_code, result.error_message) == (ErrorCode.NONE, "")
    assert (retention.name, retention.value) == ("retention.ms", "1000")
    assert (retention.config_source, retention.config_type) == (1, 5)
    assert not retention.read_only
    assert not retention.is_sensitive
    assert retention.synonyms == []
    assert retention.documentation is None


@pytest.mark.parametrize("keys", [None, []])
def test_no_configuration_keys_request_all_settings(
    broker: SimpleNamespace, keys: list[str] | None
) -> None:
    assert len(describe(broker, ConfigResourceType.TOPIC, "plain", keys).configs) == 33


def test_synonyms_and_documentation_are_returned_on_request(broker: SimpleNamespace) -> None:
    result = describe(
        broker,
        ConfigResourceType.TOPIC,
        "plain",
        ["max.message.bytes"],
        include_synonyms=True,
        include_documentation=True,
    )
    (size,) = result.configs
    assert [(item.name, item.value, item.source) for item in size.synonyms] == [
        ("message.max.bytes", "5000", 3),
        ("message.max.bytes", "1048588", 5),
    ]
    assert size.documentation


def test_a_broker_is_described_by_its_id_and_the_cluster_default_by_an_empty_name(
    broker: SimpleNamespace,
) -> None:
    own = {item.name: item for item in describe(broker, ConfigResourceType.BROKER, "1").configs}
    assert own["message.max.bytes"].value == "5000"
    assert own["node.id"].read_only
    password = own["listener.name.plaintext.ssl.key.password"]
    assert password.value is None
    assert password.is_sensitive
    (cluster,) = describe(broker, ConfigResourceType.BROKER, "").configs
    assert (cluster.name, cluster.config_source) == ("message.max.bytes", 3)


def test_loggers_are_described_by_their_levels(broker: SimpleNamespace) -> None:
    logger = logging.getLogger("barnabas.test.described")
    logger.setLevel(logging.WARNING)
    (level,) = describe(broker, ConfigResourceType.BROKER_LOGGER, "1", [logger.name]).configs
    assert (level.value, level.config_source, level.config_type) == ("WARN", 6, 0)


def test_groups_and_client_metrics_without_settings_can_be_described(
    broker: SimpleNamespace,
) -> None:
    existing = describe(
        broker, ConfigResourceType.GROUP, "billing", ["consumer.session.timeout.ms"]
    )
    assert (existing.configs[0].value, existing.configs[0].config_source) == ("46000", 8)
    assert len(describe(broker, ConfigResourceType.GROUP, "unknown").configs) == 17
    watch = describe(broker, ConfigResourceType.CLIENT_METRICS, "watch", ["metrics"])
    assert (watch.configs[0].value, watch.configs[0].config_source) == ("*", 7)
    assert len(describe(broker, ConfigResourceType.CLIENT_METRICS, "unknown").configs) == 3


@pytest.mark.parametrize(
    ("kind", "name", "code", "reported"),
    [
        (ConfigResourceType.TOPIC, "missing", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ""),
        (ConfigResourceType.TOPIC, "", ErrorCode.INVALID_TOPIC_EXCEPTION, "Topic name is invalid"),
        (
            ConfigResourceType.TOPIC,
            "a b",
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            "Topic name is invalid",
        ),
        (
            ConfigResourceType.TOPIC,
            "..",
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            "Topic name is invalid",
        ),
        (ConfigResourceType.BROKER, "abc", ErrorCode.INVALID_REQUEST, "must be an integer"),
        (ConfigResourceType.BROKER, " 1", ErrorCode.INVALID_REQUEST, "must be an integer"),
        (
            ConfigResourceType.BROKER,
            "7",
            ErrorCode.INVALID_REQUEST,
            "Unexpected broker id, expected 1 or empty string, but received 7",
        ),
        (
            ConfigResourceType.BROKER_LOGGER,
            "7",
            ErrorCode.INVALID_REQUEST,
            "Unexpected broker id, expected 1 but received 7",
        ),
        (ConfigResourceType.BROKER_LOGGER, "", ErrorCode.INVALID_REQUEST, "must not be empty"),
        (ConfigResourceType.CLIENT_METRICS, "", ErrorCode.INVALID_REQUEST, "must not be empty"),
        (ConfigResourceType.GROUP, "", ErrorCode.INVALID_REQUEST, "must not be empty"),
    ],
)
def test_resources_that_cannot_be_described_have_an_error_message(
    broker: SimpleNamespace, kind: ConfigResourceType, name: str, code: ErrorCode, reported: str
) -> None:
    result = describe(broker, kind, name)
    assert result.error_code == code
    assert result.error_message is not None
    assert reported in result.error_message
    assert result.configs == []


def test_an_unknown_type_of_resource_fails_the_whole_request(broker: SimpleNamespace) -> None:
    request = DescribeConfigsRequest(
        resources=[
            DescribeConfigsResource(resource_type=kind, resource_name="x") for kind in (2, 99)
        ]
    )
    context = context_of(broker, 4)
    with pytest.raises(KafkaError) as error:
        result_of(describe_configs.handle(request, context))
    assert error.value.code is ErrorCode.INVALID_REQUEST


def list_resources(
    broker: SimpleNamespace, kinds: list[int], version: int = 1
) -> list[tuple[str, int]]:
    context = context_of(broker, version)
    request = ListConfigResourcesRequest(resource_types=kinds)
    response: ListConfigResourcesResponse = result_of(
        list_config_resources.handle(request, context)
    )
    read, _ = ListConfigResourcesResponse.read(response.write(version), version)
    resources: list[ConfigResource] = read.config_resources
    return [(item.resource_name, item.resource_type) for item in resources]


def test_resources_are_listed_by_type(broker: SimpleNamespace) -> None:
    assert list_resources(broker, [2]) == [("orders", 2), ("plain", 2)]
    assert list_resources(broker, [4, 8]) == [("1", 4), ("1", 8)]
    assert list_resources(broker, [16, 32]) == [("watch", 16), ("billing", 32)]


def test_without_types_all_are_listed(broker: SimpleNamespace) -> None:
    assert len(list_resources(broker, [])) == 6


def test_version_0_lists_client_metrics_only(broker: SimpleNamespace) -> None:
    assert list_resources(broker, [], version=0) == [("watch", 16)]


def test_an_unknown_type_cannot_be_listed(broker: SimpleNamespace) -> None:
    context = context_of(broker, 1)
    with pytest.raises(KafkaError) as error:
        result_of(
            list_config_resources.handle(ListConfigResourcesRequest(resource_types=[99]), context)
        )
    assert error.value.code is ErrorCode.UNSUPPORTED_VERSION


class Forwarding:
    """A controller that agrees to everything."""

    async def forward(self, request: Any, _: Any) -> Any:
        return SimpleNamespace(
            responses=[
                AlterConfigsResourceResponse(
                    resource_type=item.resource_type, resource_name=item.resource_name
                )
                for item in request.resources
            ]
        )


@pytest.mark.parametrize(
    ("handle", "request_type", "resource_type"),
    [
        (alter_configs.handle, AlterConfigsRequest, AlterConfigsResource),
        (
            alter_configs.handle_incremental,
            IncrementalAlterConfigsRequest,
            IncrementalAlterConfigsResource,
        ),
    ],
    ids=["replaced", "incremental"],
)
def test_the_settings_of_another_broker_cannot_be_changed_here(
    broker: SimpleNamespace, handle: Any, request_type: Any, resource_type: Any
) -> None:
    broker.controller = Forwarding()
    sent_request = [(ConfigResourceType.BROKER, name) for name in ("", "1", "2", "one")]
    sent_request.append((ConfigResourceType.TOPIC, "2"))
    request = request_type(
        resources=[
            resource_type(resource_type=kind, resource_name=name) for kind, name in sent_request
        ]
    )
    response = result_of(handle(request, context_of(broker, 1)))
    codes = {
        (item.resource_type, item.resource_name): item.error_code for item in response.responses
    }
    error = {resource for resource, code in codes.items() if code == ErrorCode.INVALID_REQUEST}
    assert set(codes) == set(sent_request)
    assert error == {(ConfigResourceType.BROKER, "2"), (ConfigResourceType.BROKER, "one")}


@pytest.mark.parametrize("may_alter", [False, True])
def test_stores_are_read_only_for_clients_that_may_change_them(
    broker: SimpleNamespace, may_alter: bool
) -> None:
    """The errors tell which files exist, and what they contain."""
    validated = []

    async def validate(values: Any) -> None:
        validated.append(values)

    def is_allowed(_: RequestContext, operation: AclOperation, *__: Any, **___: Any) -> bool:
        return may_alter and operation is AclOperation.ALTER_CONFIGS

    broker.controller = Forwarding()
    broker.store_validator = SimpleNamespace(validate=validate)
    broker.authorizer = SimpleNamespace(is_allowed=is_allowed)
    setting = IncrementalAlterableConfig(
        name="listener.name.a.ssl.keystore.location", value="/etc/shadow"
    )
    resource = IncrementalAlterConfigsResource(
        resource_type=ConfigResourceType.BROKER, resource_name="1", configs=[setting]
    )
    request = IncrementalAlterConfigsRequest(resources=[resource])
    result_of(alter_configs.handle_incremental(request, context_of(broker, 1)))
    assert len(validated) == may_alter
