"""Settings are described, and their changes validated, as by the real Kafka."""

from collections.abc import Iterator
from typing import Any

import pytest
from tests.config.differences import DYNAMIC_ONLY_HERE
from tests.conformance.brokers import PeerBroker, connect, is_peer_installed, read_frame
from tests.wait import wait_until

from barnabas.config import (
    BrokerSettings,
    ConfigResolver,
    ConfigResourceType,
    InvalidConfig,
    InvalidConfigRequest,
    parse_properties,
    validate_client_metrics,
)
from barnabas.config.descriptions import (
    DescribedSetting,
    describe_broker,
    describe_client_metrics,
    describe_cluster,
    describe_group,
    describe_topic,
)
from barnabas.wire.apis import ApiKey, api
from barnabas.wire.errors import ErrorCode
from barnabas.wire.headers import RequestHeader, read_response_header, write_request_header
from barnabas.wire.messages.configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    IncrementalAlterableConfig,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
)
from barnabas.wire.messages.topics import CreatableTopic, CreateTopicsRequest
from barnabas.wire.outgoing import Outgoing
from barnabas.wire.schema import Message

pytestmark = pytest.mark.peer

FILE_SETTINGS = {
    "group.consumer.session.timeout.ms": "50000",
    "listener.name.plaintext.max.connections": "500",
    "listener.name.plaintext.ssl.key.password": "hunter2",
    "log.cleaner.io.buffer.load.factor": "0.90",
    "log.cleanup.policy": "compact,delete",
    "log.flush.scheduler.interval.ms": "5000000",
    "log.initial.task.delay.ms": "1000",
    "log.retention.hours": "24",
    "log.roll.ms": "3600000",
    "some.unknown": "7",
    "ssl.key.password": "hunter2",
    "super.users": "User:a",
}

DYNAMIC = {
    (ConfigResourceType.TOPIC, "changed"): {
        "cleanup.policy": "compact, delete",
        "max.message.bytes": " 2000 ",
        "min.cleanable.dirty.ratio": "1e-1",
        "retention.ms": "1000",
    },
    (ConfigResourceType.BROKER, "1"): {
        "listener.name.plaintext.max.connections": "99",
        "log.cleaner.threads": "2",
        "log.retention.ms": "7200000",
        "message.max.bytes": "7000",
    },
    (ConfigResourceType.BROKER, ""): {
        "compression.type": "zstd",
        "leader.replication.throttled.rate": "1000",
        "log.segment.bytes": "2097152",
        "message.max.bytes": "5000",
        # The cluster is formatted with it.
        "min.insync.replicas": "1",
    },
    (ConfigResourceType.CLIENT_METRICS, "changed"): {
        "interval.ms": "60000",
        "match": "client_software_name=x",
        "metrics": "a,b",
    },
    (ConfigResourceType.GROUP, "changed"): {
        "consumer.session.timeout.ms": "46000",
        "share.auto.offset.reset": "earliest",
    },
}

RESOURCES = [
    (ConfigResourceType.TOPIC, "changed"),
    (ConfigResourceType.TOPIC, "plain"),
    (ConfigResourceType.BROKER, "1"),
    (ConfigResourceType.BROKER, ""),
    (ConfigResourceType.CLIENT_METRICS, "changed"),
    (ConfigResourceType.CLIENT_METRICS, "plain"),
    (ConfigResourceType.GROUP, "changed"),
    (ConfigResourceType.GROUP, "plain"),
]


VALIDATED_CHANGES = [
    (ConfigResourceType.TOPIC, "plain", {"bogus": "1"}),
    (ConfigResourceType.TOPIC, "plain", {"retention.ms": ""}),
    (ConfigResourceType.TOPIC, "plain", {"retention.ms": "-5"}),
    (ConfigResourceType.TOPIC, "plain", {"retention.bytes": "-9"}),
    (ConfigResourceType.TOPIC, "plain", {"cleanup.policy": "compact,compact"}),
    (ConfigResourceType.TOPIC, "plain", {"cleanup.policy": "compact,"}),
    (ConfigResourceType.TOPIC, "plain", {"cleanup.policy": ""}),
    (
        ConfigResourceType.TOPIC,
        "plain",
        {"min.compaction.lag.ms": "9", "max.compaction.lag.ms": "5"},
    ),
    (ConfigResourceType.TOPIC, "plain", {"remote.storage.enable": "true"}),
    (ConfigResourceType.TOPIC, "plain", {"local.retention.ms": "99999999999"}),
    (ConfigResourceType.TOPIC, "plain", {"follower.replication.throttled.replicas": "none"}),
    (ConfigResourceType.TOPIC, "plain", {"internal.segment.bytes": "100"}),
    (ConfigResourceType.TOPIC, "plain", {"compression.gzip.level": "0"}),
    (ConfigResourceType.BROKER, "1", {"bogus": "1"}),
    (ConfigResourceType.BROKER, "1", {"default.replication.factor": "5"}),
    (ConfigResourceType.BROKER, "1", {"log.retention.ms": "0"}),
    (ConfigResourceType.BROKER, "1", {"log.retention.hours": "5"}),
    (ConfigResourceType.BROKER, "1", {"ssl.keystore.location": "/x"}),
    (ConfigResourceType.BROKER, "", {"sasl.enabled.mechanisms": "PLAIN"}),
    (ConfigResourceType.BROKER, "", {"listener.name.plaintext.max.connections": "5"}),
    (ConfigResourceType.BROKER, "", {"listener.name.plaintext.ssl.keystore.location": "/x"}),
    (ConfigResourceType.BROKER, "1", {"cordoned.log.dirs": "/x"}),
    (ConfigResourceType.BROKER, "1", {"max.connections.per.ip": "0"}),
    (ConfigResourceType.BROKER, "1", {"log.local.retention.ms": "999999999999"}),
    (ConfigResourceType.BROKER, "1", {"log.cleaner.threads": "0"}),
    (ConfigResourceType.BROKER, "1", {"log.cleaner.threads": "4"}),
    (ConfigResourceType.BROKER, "1", {"log.cleaner.threads": "5"}),
    (ConfigResourceType.BROKER, "", {"num.io.threads": "16"}),
    (ConfigResourceType.BROKER, "1", {"num.io.threads": "17"}),
    (ConfigResourceType.BROKER, "1", {"num.network.threads": "7"}),
    (ConfigResourceType.BROKER, "1", {"background.threads": "4"}),
    (ConfigResourceType.BROKER, "1", {"num.replica.fetchers": "3"}),
    (ConfigResourceType.BROKER, "1", {"num.recovery.threads.per.data.dir": "5"}),
    (ConfigResourceType.BROKER, "1", {"group.consumer.assignment.interval.ms": "20000"}),
    (ConfigResourceType.CLIENT_METRICS, "plain", {"bogus": "1"}),
    (ConfigResourceType.CLIENT_METRICS, "plain", {"interval.ms": "5"}),
    (ConfigResourceType.CLIENT_METRICS, "plain", {"match": "client_id=["}),
    (ConfigResourceType.CLIENT_METRICS, "plain", {"metrics": "*"}),
    (ConfigResourceType.GROUP, "plain", {"bogus": "1"}),
    (ConfigResourceType.GROUP, "plain", {"consumer.session.timeout.ms": "1"}),
    (ConfigResourceType.GROUP, "plain", {"consumer.heartbeat.interval.ms": "15000"}),
    (ConfigResourceType.GROUP, "plain", {"share.record.lock.duration.ms": "5000000"}),
    (ConfigResourceType.GROUP, "plain", {"streams.num.standby.replicas": "3"}),
    (ConfigResourceType.GROUP, "plain", {"share.auto.offset.reset": "by_duration:-P1D"}),
]


@pytest.fixture(scope="module")
def changed_kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PeerBroker]:
    """The real Kafka with settings in its file and dynamic settings."""
    if not is_peer_installed():
        pytest.skip("the real Kafka is not installed: set PEERS to the folder of its script")
    kafka = PeerBroker(tmp_path_factory.mktemp("kafka"), settings=FILE_SETTINGS)
    kafka.start()
    try:
        topics = [
            CreatableTopic(name=name, num_partitions=1, replication_factor=1)
            for name in ("changed", "plain")
        ]
        send_request(kafka, CreateTopicsRequest(topics=topics, timeout_ms=30_000), 7)
        for (resource_type, name), configs in DYNAMIC.items():
            assert alter(kafka, resource_type, name, configs) is ErrorCode.NONE
        wait_until(lambda: is_changed(kafka), "the last change is described")
        yield kafka
    finally:
        kafka.stop()


@pytest.fixture(scope="module")
def resolver(changed_kafka: PeerBroker) -> ConfigResolver:
    """Our resolver with the settings of the same file."""
    text = (changed_kafka.directory / "server.properties").read_text()
    return ConfigResolver(BrokerSettings.from_properties(parse_properties(text)), DYNAMIC)


@pytest.mark.parametrize(("resource_type", "name"), RESOURCES)
def test_every_setting_is_described_as_by_kafka(
    changed_kafka: PeerBroker,
    resolver: ConfigResolver,
    resource_type: ConfigResourceType,
    name: str,
) -> None:
    theirs = described_by(changed_kafka, resource_type, name)
    ours = describe(resolver, resource_type, name)
    assert {setting.name: our_fields(setting) for setting in ours if not differs(setting.name)} == {
        setting.name: their_fields(setting) for setting in theirs if not differs(setting.name)
    }


def differs(name: str) -> bool:
    """Whether Kafka does not have a setting, or does not change it at run time."""
    return name.startswith("barnabas.") or name in DYNAMIC_ONLY_HERE


@pytest.mark.parametrize(("resource_type", "name", "configs"), VALIDATED_CHANGES)
def test_a_change_is_validated_as_by_kafka(
    changed_kafka: PeerBroker,
    resolver: ConfigResolver,
    resource_type: ConfigResourceType,
    name: str,
    configs: dict[str, str | None],
) -> None:
    theirs = alter(changed_kafka, resource_type, name, configs, validate_only=True)
    assert validate(resolver, resource_type, name, configs) is theirs


def describe(
    resolver: ConfigResolver, resource_type: ConfigResourceType, name: str
) -> list[DescribedSetting]:
    match resource_type:
        case ConfigResourceType.TOPIC:
            return describe_topic(resolver, name)
        case ConfigResourceType.BROKER:
            return describe_broker(resolver) if name else describe_cluster(resolver)
        case ConfigResourceType.GROUP:
            return describe_group(resolver, name)
        case _:
            return describe_client_metrics(resolver, name)


def described_by(
    kafka: PeerBroker, resource_type: ConfigResourceType, name: str
) -> list[DescribeConfigsResourceResult]:
    resource = DescribeConfigsResource(
        resource_type=resource_type, resource_name=name, configuration_keys=None
    )
    request = DescribeConfigsRequest(resources=[resource], include_synonyms=True)
    configs: list[DescribeConfigsResourceResult] = (
        send_request(kafka, request, 4).results[0].configs
    )
    return configs


def is_changed(kafka: PeerBroker) -> bool:
    """Whether the last change is described; changes take effect in order."""
    *_, ((resource_type, name), configs) = DYNAMIC.items()
    described = described_by(kafka, resource_type, name)
    return configs.items() <= {setting.name: setting.value for setting in described}.items()


def validate(
    resolver: ConfigResolver,
    resource_type: ConfigResourceType,
    name: str,
    configs: dict[str, str | None],
) -> ErrorCode:
    configs = {**resolver.overrides(resource_type, name), **configs}
    try:
        match resource_type:
            case ConfigResourceType.TOPIC:
                resolver.validate_topic(configs)
            case ConfigResourceType.BROKER:
                resolver.validate_broker(configs, broker_id=int(name) if name else None)
            case ConfigResourceType.GROUP:
                resolver.validate_group(configs)
            case _:
                validate_client_metrics(configs)
    except InvalidConfigRequest:
        return ErrorCode.INVALID_REQUEST
    except InvalidConfig:
        return ErrorCode.INVALID_CONFIG
    return ErrorCode.NONE


def our_fields(described: DescribedSetting) -> tuple[Any, ...]:
    synonyms = [tuple(synonym) for synonym in described.synonyms]
    return (*described._replace(synonyms=()), synonyms)[1:]


def their_fields(config: DescribeConfigsResourceResult) -> tuple[Any, ...]:
    return (
        config.value,
        config.config_source,
        (),
        config.config_type or None,
        config.read_only,
        config.is_sensitive,
        [(synonym.name, synonym.value, synonym.source) for synonym in config.synonyms],
    )


def alter(
    kafka: PeerBroker,
    resource_type: ConfigResourceType,
    name: str,
    configs: dict[str, str] | dict[str, str | None],
    *,
    validate_only: bool = False,
) -> ErrorCode:
    resource = IncrementalAlterConfigsResource(
        resource_type=resource_type,
        resource_name=name,
        configs=[
            IncrementalAlterableConfig(name=key, value=value) for key, value in configs.items()
        ],
    )
    request = IncrementalAlterConfigsRequest(resources=[resource], validate_only=validate_only)
    return ErrorCode(send_request(kafka, request, 1).responses[0].error_code)


def send_request(kafka: PeerBroker, request: Message, version: int) -> Any:
    """Sends a request on a new connection and returns the response."""
    key = ApiKey(request.API_KEY)
    header = Outgoing()
    write_request_header(RequestHeader(key, version, 1, "settings"), header)
    content = bytes(header) + request.write(version)
    with connect(kafka.port, deadline_s=30) as connection:
        connection.sendall(len(content).to_bytes(4, "big") + content)
        frame = read_frame(connection)
    _, body = read_response_header(frame, key, version)
    return api(key).response.read_exactly(frame, version, body)
