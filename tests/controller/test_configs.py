"""AlterConfigs and IncrementalAlterConfigs: decisions and errors."""

from typing import Any

import pytest
from tests.controller.conftest import World, broker

from barnabas.controller.context import ControllerDecision
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.configs import (
    AlterableConfig,
    AlterConfigsRequest,
    AlterConfigsResource,
    IncrementalAlterableConfig,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
)
from barnabas.wire.messages.metadata_records import ClearElrRecord, ConfigRecord, TopicRecord

TOPIC, BROKER, LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = range(4)


@pytest.fixture
def world() -> World:
    world = World(broker(1))
    world.apply(TopicRecord(name="orders", topic_id=b"o" * 16))
    return world


def change(
    world: World, resource_type: int, name: str, *changes: tuple[str, int, str | None]
) -> tuple[int, ControllerDecision]:
    request = IncrementalAlterConfigsRequest(
        resources=[
            IncrementalAlterConfigsResource(
                resource_type=resource_type,
                resource_name=name,
                configs=[
                    IncrementalAlterableConfig(name=key, config_operation=operation, value=value)
                    for key, operation, value in changes
                ],
            )
        ]
    )
    decision = world.decide(request)
    response: Any = decision.response
    return response.responses[0].error_code, decision


def put(world: World, resource_type: int, name: str, **configs: str | None) -> int:
    request = AlterConfigsRequest(
        resources=[
            AlterConfigsResource(
                resource_type=resource_type,
                resource_name=name,
                configs=[
                    AlterableConfig(name=key.replace("_", "."), value=value)
                    for key, value in configs.items()
                ],
            )
        ]
    )
    response: Any = world.decide(request).response
    code: int = response.responses[0].error_code
    return code


@pytest.mark.parametrize(
    ("resource_type", "name", "key", "value"),
    [
        (TOPIC, "orders", "retention.ms", "5"),
        (BROKER, "1", "log.cleaner.threads", "2"),
        (BROKER, "", "log.retention.ms", "10"),
        (BROKER, "1", "of.a.plugin", "1"),
        (CLIENT_METRICS, "subscription", "interval.ms", "1000"),
        (GROUP, "group", "consumer.session.timeout.ms", "46000"),
    ],
)
def test_every_type_of_resource_has_configs(
    resource_type: int, name: str, key: str, value: str, world: World
) -> None:
    code, decision = change(world, resource_type, name, (key, SET, value))
    assert code == 0
    assert decision.records == [
        ConfigRecord(resource_type=resource_type, resource_name=name, name=key, value=value)
    ]
    assert world.image.config(resource_type, name) == {key: value}
    assert change(world, resource_type, name, (key, DELETE, None))[0] == 0
    assert world.image.config(resource_type, name) == {}


@pytest.mark.parametrize(
    ("resource_type", "name", "asked", "code"),
    [
        (TOPIC, "nope", ("retention.ms", SET, "5"), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (TOPIC, "", ("retention.ms", SET, "5"), ErrorCode.INVALID_REQUEST),
        (TOPIC, "a b", ("retention.ms", SET, "5"), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (TOPIC, "orders", ("nope", SET, "5"), ErrorCode.INVALID_CONFIG),
        (TOPIC, "orders", ("retention.ms", SET, "x"), ErrorCode.INVALID_CONFIG),
        (TOPIC, "orders", ("retention.ms", SET, None), ErrorCode.INVALID_REQUEST),
        (TOPIC, "orders", ("retention.ms", APPEND, "5"), ErrorCode.INVALID_CONFIG),
        (TOPIC, "orders", ("cleanup.policy", APPEND, None), ErrorCode.INVALID_REQUEST),
        (TOPIC, "orders", ("retention.ms", 9, "5"), ErrorCode.INVALID_REQUEST),
        (TOPIC, "orders", ("nope", DELETE, None), ErrorCode.NONE),
        (BROKER, "x", ("log.cleaner.threads", SET, "2"), ErrorCode.INVALID_REQUEST),
        (BROKER, "77", ("log.cleaner.threads", SET, "2"), ErrorCode.BROKER_ID_NOT_REGISTERED),
        (BROKER, "1", ("broker.id", SET, "2"), ErrorCode.INVALID_REQUEST),
        (BROKER, "", ("listeners", SET, "PLAINTEXT://:1"), ErrorCode.INVALID_REQUEST),
        (BROKER, "", ("log.segment.bytes", SET, "x"), ErrorCode.INVALID_REQUEST),
        (CLIENT_METRICS, "s", ("interval.ms", SET, "50"), ErrorCode.INVALID_REQUEST),
        (CLIENT_METRICS, "s", ("nope", SET, "50"), ErrorCode.INVALID_REQUEST),
        (CLIENT_METRICS, "", ("interval.ms", SET, "5000"), ErrorCode.INVALID_REQUEST),
        (GROUP, "g", ("consumer.session.timeout.ms", SET, "1"), ErrorCode.INVALID_CONFIG),
        (GROUP, "g", ("nope", SET, "1"), ErrorCode.INVALID_CONFIG),
        (GROUP, "", ("consumer.session.timeout.ms", SET, "1"), ErrorCode.INVALID_REQUEST),
        (LOGGER, "1", ("x", SET, "INFO"), ErrorCode.INVALID_REQUEST),
        (0, "x", ("a", SET, "b"), ErrorCode.INVALID_REQUEST),
    ],
)
def test_invalid_configs_are_rejected(
    resource_type: int,
    name: str,
    asked: tuple[str, int, str | None],
    code: ErrorCode,
    world: World,
) -> None:
    found, decision = change(world, resource_type, name, asked)
    assert found == code
    assert decision.records == []


def test_append_and_subtract_start_from_the_default_list(world: World) -> None:
    for operation, value, expected in (
        (APPEND, "compact", "delete,compact"),
        (APPEND, "compact", "delete,compact"),
        (SUBTRACT, "delete", "compact"),
    ):
        assert change(world, TOPIC, "orders", ("cleanup.policy", operation, value))[0] == 0
        assert world.image.config(TOPIC, "orders") == {"cleanup.policy": expected}


def test_an_unchanged_config_is_written_for_a_broker_but_not_for_a_topic(world: World) -> None:
    for resource_type, name, key, again in (
        (TOPIC, "orders", "retention.ms", 0),
        (BROKER, "1", "log.cleaner.threads", 1),
    ):
        change(world, resource_type, name, (key, SET, "2"))
        assert len(change(world, resource_type, name, (key, SET, "2"))[1].records) == again


def test_duplicate_keys_and_resources_are_rejected(world: World) -> None:
    twice = [("retention.ms", SET, "5"), ("retention.ms", SET, "6")]
    assert change(world, TOPIC, "orders", *twice)[0] == ErrorCode.INVALID_REQUEST
    resource = AlterConfigsResource(resource_type=TOPIC, resource_name="orders")
    request = AlterConfigsRequest(resources=[resource, resource])
    response: Any = world.decide(request).response
    assert [item.error_code for item in response.responses] == [ErrorCode.INVALID_REQUEST] * 2


def test_alter_configs_replaces_all_configs(world: World) -> None:
    assert put(world, TOPIC, "orders", retention_ms="5", cleanup_policy="compact") == 0
    assert put(world, TOPIC, "orders", retention_ms="6") == 0
    assert world.image.config(TOPIC, "orders") == {"retention.ms": "6"}
    assert put(world, TOPIC, "orders", retention_ms=None) == ErrorCode.INVALID_REQUEST
    assert put(world, TOPIC, "orders") == 0
    assert world.image.config(TOPIC, "orders") == {}


def test_validate_only_changes_nothing(world: World) -> None:
    resource = IncrementalAlterConfigsResource(
        resource_type=TOPIC,
        resource_name="orders",
        configs=[IncrementalAlterableConfig(name="retention.ms", value="5")],
    )
    request = IncrementalAlterConfigsRequest(resources=[resource], validate_only=True)
    assert world.decide(request).records == []


def test_a_new_min_insync_replicas_clears_the_eligible_leaders(world: World) -> None:
    for resource_type, name, cleared in ((TOPIC, "orders", "orders"), (BROKER, "", "")):
        asked = ("min.insync.replicas", SET, "2")
        records = change(world, resource_type, name, asked)[1].records
        assert records[-1] == ClearElrRecord(topic_name=cleared)


def test_with_eligible_leaders_a_broker_cannot_have_its_own_min_insync_replicas(
    world: World,
) -> None:
    min_isr = "min.insync.replicas"
    change(world, BROKER, "", (min_isr, SET, "1"))
    assert change(world, BROKER, "", (min_isr, DELETE, None))[0] == ErrorCode.INVALID_CONFIG
    assert change(world, BROKER, "1", (min_isr, SET, "2"))[0] == ErrorCode.INVALID_CONFIG
    assert put(world, BROKER, "", log_retention_ms="10") == ErrorCode.INVALID_CONFIG
