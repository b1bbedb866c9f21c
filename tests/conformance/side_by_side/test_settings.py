"""DescribeConfigs, AlterConfigs and IncrementalAlterConfigs in every version."""

from typing import Any

import pytest
from tests.config.differences import DYNAMIC_ONLY_HERE
from tests.conformance.side_by_side.conftest import PLAIN, create_topic
from tests.conformance.side_by_side.sides import Side, Sides, assert_same_responses

from barnabas.wire.messages.configs import (
    AlterableConfig,
    AlterConfigsRequest,
    AlterConfigsResource,
    DescribeConfigsRequest,
    DescribeConfigsResource,
    IncrementalAlterableConfig,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
    ListConfigResourcesRequest,
)

pytestmark = pytest.mark.peer

TOPIC, BROKER, LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = range(4)


def describe(*resources: tuple[int, str, list[str] | None], synonyms: bool = True) -> Any:
    requested = [
        DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=keys)
        for kind, name, keys in resources
    ]
    return DescribeConfigsRequest(resources=requested, include_synonyms=synonyms)


@pytest.mark.parametrize("synonyms", [True, False])
@pytest.mark.parametrize(
    "resource",
    [
        (TOPIC, PLAIN, None),
        (TOPIC, PLAIN, ["retention.ms", "no.such"]),
        (TOPIC, PLAIN, []),
        (TOPIC, "unknown-to-both", None),
        (TOPIC, "no/name", None),
        (TOPIC, "", None),
        (BROKER, "1", ["background.threads", "log.retention.hours", "node.id", "no.such"]),
        (BROKER, "", None),
        (BROKER, "7", None),
        (BROKER, "one", None),
        (CLIENT_METRICS, "unknown", None),
        (CLIENT_METRICS, "", None),
        (GROUP, "unknown", None),
        (GROUP, "", None),
        (0, "x", None),
        (99, "x", None),
    ],
    ids=str,
)
def test_describe_configs(sides: Sides, resource: Any, synonyms: bool) -> None:
    assert_same_responses(sides, lambda *_: describe(resource, synonyms=synonyms))


def test_every_setting_of_a_broker(sides: Sides) -> None:
    """Compares the value, source, type and synonyms of every default."""
    described = []
    for side in sides:
        response: Any = side.send(describe((BROKER, "1", None)), 4)
        described.append({config.name: config for config in response.results[0].configs})
    kafka, barnabas = described
    assert kafka.keys() - barnabas.keys() == set()
    for name, theirs in kafka.items():
        if theirs.config_source == 5:  # a default: explicit settings differ between the brokers
            ours = barnabas[name]
            assert ours.read_only == (theirs.read_only and name not in DYNAMIC_ONLY_HERE), name
            assert (name, facts(ours)) == (name, facts(theirs))


def facts(described: Any) -> tuple[Any, ...]:
    synonyms = [(synonym.name, synonym.value, synonym.source) for synonym in described.synonyms]
    return (
        described.value,
        described.config_source,
        described.is_sensitive,
        described.config_type,
        synonyms,
    )


CHANGES: dict[str, list[tuple[str, int, str | None]]] = {
    "set": [("retention.ms", SET, "1000")],
    "set_null": [("retention.ms", SET, None)],
    "set_bad": [("retention.ms", SET, "soon")],
    "set_unknown": [("no.such", SET, "1")],
    "delete": [("retention.ms", DELETE, None)],
    "delete_unknown": [("no.such", DELETE, None)],
    "append": [("cleanup.policy", APPEND, "compact")],
    "append_again": [("cleanup.policy", APPEND, "delete")],
    "append_bad": [("cleanup.policy", APPEND, "burn")],
    "append_to_no_list": [("retention.ms", APPEND, "1")],
    "subtract": [("cleanup.policy", SUBTRACT, "compact")],
    "subtract_last": [("cleanup.policy", SUBTRACT, "delete")],
    "operation_unknown": [("retention.ms", 9, "1")],
    "twice": [("retention.ms", SET, "1"), ("retention.ms", SET, "2")],
    "empty": [],
    "some_bad": [("segment.ms", SET, "60000"), ("retention.ms", SET, "soon")],
}


@pytest.mark.parametrize("validate_only", [True, False])
@pytest.mark.parametrize("case", CHANGES)
def test_incremental_alter_configs(sides: Sides, case: str, validate_only: bool) -> None:
    topic = f"incremental-{case}-{validate_only}"
    for side in sides:
        create_topic(side, topic)
    assert_same_responses(
        sides, lambda *_: incremental((TOPIC, topic), CHANGES[case], validate_only)
    )
    assert_same_responses(sides, lambda *_: describe((TOPIC, topic, None)))


@pytest.mark.parametrize(
    "resource",
    [(TOPIC, "unknown-to-both"), (TOPIC, "no/name"), (TOPIC, ""), (BROKER, "7"), (BROKER, "one"),
     (BROKER, "1"), (BROKER, ""), (BROKER, "-1"), (LOGGER, "7"), (LOGGER, "one"), (LOGGER, ""),
     (GROUP, "g"), (GROUP, ""), (CLIENT_METRICS, "m"), (CLIENT_METRICS, ""), (0, "x"), (99, "x")],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize(
    "name", ["retention.ms", "log.cleaner.threads", "node.id", "consumer.session.timeout.ms"]
)
def test_alter_configs_of_any_resource(sides: Sides, resource: tuple[int, str], name: str) -> None:
    change = [(name, SET, "2")]
    assert_same_responses(sides, lambda *_: incremental(resource, change, True))
    assert_same_responses(sides, lambda *_: replace(resource, {name: "2"}, True))


INVALID_CHANGES: list[tuple[int, str, str, str | None, int]] = [
    (BROKER, "1", "log.cleaner.threads", "many", SET),
    (BROKER, "1", "log.cleaner.threads", "1000", SET),
    (BROKER, "", "log.cleaner.threads", "1000", SET),
    (BROKER, "", "log.retention.ms", "x", SET),
    (BROKER, "1", "listeners", "PLAINTEXT://:0", SET),
    (BROKER, "", "listeners", "PLAINTEXT://:0", SET),
    (BROKER, "1", "min.insync.replicas", "1", SET),
    (BROKER, "", "min.insync.replicas", None, DELETE),
    (BROKER, "1", "num.io.threads", "8", APPEND),
    (BROKER, "1", "no.such", "8", SET),
    (BROKER, "", "no.such", "8", SET),
    (GROUP, "g", "consumer.session.timeout.ms", "1", SET),
    (GROUP, "g", "consumer.session.timeout.ms", "soon", SET),
    (GROUP, "g", "consumer.heartbeat.interval.ms", "1000000", SET),
    (GROUP, "g", "no.such", "1", SET),
    (CLIENT_METRICS, "m", "interval.ms", "1", SET),
    (CLIENT_METRICS, "m", "interval.ms", "soon", SET),
    (CLIENT_METRICS, "m", "match", "no_pattern", SET),
    (CLIENT_METRICS, "m", "match", "color=[a-z", SET),
    (LOGGER, "1", "kafka.no.such.logger", "DEBUG", SET),
    (LOGGER, "1", "root", "LOUD", SET),
    (LOGGER, "1", "root", "INFO", APPEND),
    (TOPIC, PLAIN, "unclean.leader.election.enable", "perhaps", SET),
    (TOPIC, PLAIN, "min.insync.replicas", "0", SET),
    (TOPIC, PLAIN, "compression.type", "best", SET),
    (TOPIC, PLAIN, "leader.replication.throttled.replicas", "x", SET),
    (TOPIC, PLAIN, "min.cleanable.dirty.ratio", "2", SET),
    (TOPIC, PLAIN, "max.compaction.lag.ms", "0", SET),
    (TOPIC, PLAIN, "retention.ms", "99999999999999999999", SET),
    (TOPIC, PLAIN, "remote.storage.enable", "true", SET),
]


@pytest.mark.parametrize("change", INVALID_CHANGES, ids=str)
def test_values_that_no_resource_can_have(sides: Sides, change: Any) -> None:
    kind, resource, name, value, operation = change
    assert_same_responses(
        sides, lambda *_: incremental((kind, resource), [(name, operation, value)], True)
    )


@pytest.mark.parametrize("validate_only", [True, False])
@pytest.mark.parametrize(
    "configs",
    [{"retention.ms": "1"}, {"retention.ms": None}, {"no.such": "1"}, {"retention.ms": "soon"}, {}],
    ids=str,
)
def test_alter_configs(sides: Sides, configs: dict[str, str | None], validate_only: bool) -> None:
    topic = f"replace-{abs(hash(str(configs)))}-{validate_only}"
    for side in sides:
        create_topic(side, topic)
        side.send(incremental((TOPIC, topic), [("segment.ms", SET, "60000")], False), 1)
    assert_same_responses(sides, lambda *_: replace((TOPIC, topic), configs, validate_only))
    assert_same_responses(sides, lambda *_: describe((TOPIC, topic, None)))


def test_a_resource_altered_twice_in_one_request(sides: Sides) -> None:
    def build(_: Side, __: int) -> Any:
        request = incremental((TOPIC, PLAIN), [("retention.ms", SET, "1000")], True)
        request.resources *= 2
        return request

    assert_same_responses(sides, build)


@pytest.mark.parametrize("kinds", [[], [BROKER], [GROUP, CLIENT_METRICS], [0], [99], [LOGGER]])
def test_list_config_resources(sides: Sides, kinds: list[int]) -> None:
    ignoring = {} if kinds else {"config_resources": "different topics"}
    assert_same_responses(
        sides, lambda *_: ListConfigResourcesRequest(resource_types=kinds), ignoring=ignoring
    )


def incremental(
    resource: tuple[int, str], changes: list[tuple[str, int, str | None]], validate_only: bool
) -> Any:
    kind, name = resource
    altered = [
        IncrementalAlterableConfig(name=key, config_operation=operation, value=value)
        for key, operation, value in changes
    ]
    selected = IncrementalAlterConfigsResource(
        resource_type=kind, resource_name=name, configs=altered
    )
    return IncrementalAlterConfigsRequest(resources=[selected], validate_only=validate_only)


def replace(resource: tuple[int, str], values: dict[str, Any], validate_only: bool) -> Any:
    kind, name = resource
    altered = [AlterableConfig(name=key, value=value) for key, value in values.items()]
    selected = AlterConfigsResource(resource_type=kind, resource_name=name, configs=altered)
    return AlterConfigsRequest(resources=[selected], validate_only=validate_only)
