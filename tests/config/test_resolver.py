"""Effective settings: topic, then broker, then cluster-wide, then the file, then the default."""

import logging

import pytest
from tests.config.conftest import Configure

from barnabas.config import ConfigResolver, ConfigResourceType, InvalidConfig, InvalidConfigRequest

BROKER = (ConfigResourceType.BROKER, "1")
CLUSTER = (ConfigResourceType.BROKER, "")
OTHER = (ConfigResourceType.BROKER, "2")
ORDERS = (ConfigResourceType.TOPIC, "orders")


def test_topic_settings_override_broker_cluster_and_file_settings(configure: Configure) -> None:
    configs: dict[tuple[int, str], dict[str, str]] = {}
    resolver = ConfigResolver(configure({"message.max.bytes": "4000"}), configs)
    effective = [resolver.topic("orders")["max.message.bytes"]]
    for resource, name, value in (
        (CLUSTER, "message.max.bytes", "3000"),
        (BROKER, "message.max.bytes", "2000"),
        (ORDERS, "max.message.bytes", "1000"),
    ):
        configs[resource] = {name: value}
        resolver.invalidate([resource])
        effective.append(resolver.topic("orders")["max.message.bytes"])
    assert effective == [4000, 3000, 2000, 1000]
    assert resolver.topic("payments")["max.message.bytes"] == 2000
    assert resolver.broker("message.max.bytes") == 2000
    assert resolver.broker_config["message.max.bytes"] == 2000


def test_a_topic_without_settings_has_kafkas_defaults(configure: Configure) -> None:
    config = ConfigResolver(configure(), {}).topic("orders")
    assert config["retention.ms"] == 7 * 24 * 3_600_000
    assert config["cleanup.policy"] == ("delete",)
    assert config["min.cleanable.dirty.ratio"] == 0.5


@pytest.mark.parametrize(
    ("explicit", "retention_ms"),
    [
        ({"log.retention.hours": "2"}, 7_200_000),
        ({"log.retention.hours": "2", "log.retention.minutes": "3"}, 180_000),
        ({"log.retention.minutes": "3", "log.retention.ms": "4"}, 4),
        ({"log.retention.hours": "-1"}, -1),
        ({"log.retention.ms": "-5"}, -1),
    ],
)
def test_retention_in_ms_overrides_minutes_and_hours(
    configure: Configure, explicit: dict[str, str | None], retention_ms: int
) -> None:
    assert ConfigResolver(configure(explicit), {}).topic("orders")["retention.ms"] == retention_ms


def test_topic_times_default_to_broker_settings_in_other_units(configure: Configure) -> None:
    settings = configure({"log.roll.hours": "1", "log.flush.scheduler.interval.ms": "9"})
    config = ConfigResolver(settings, {}).topic("orders")
    assert config["segment.ms"] == 3_600_000
    assert config["flush.ms"] == 9
    assert config["local.retention.ms"] == -2


def test_topics_without_own_settings_share_one_config(configure: Configure) -> None:
    resolver = ConfigResolver(configure(), {ORDERS: {"retention.ms": "1"}})
    assert resolver.topic("a") is resolver.topic("b") is resolver.topic_defaults
    assert resolver.topic("orders") is resolver.topic("orders")


def test_invalidating_one_topic_keeps_the_config_of_others(configure: Configure) -> None:
    other = (ConfigResourceType.TOPIC, "other")
    configs = {ORDERS: {"retention.ms": "1"}, other: {"retention.ms": "2"}}
    resolver = ConfigResolver(configure(), configs)
    cached = resolver.topic("other")
    assert resolver.topic("orders")["retention.ms"] == 1
    del configs[ORDERS]
    resolver.invalidate([ORDERS])
    assert resolver.topic("orders")["retention.ms"] == 7 * 24 * 3_600_000
    assert resolver.topic("other") is cached


def test_settings_of_another_broker_have_no_effect(configure: Configure) -> None:
    configs = {(ConfigResourceType.BROKER, "2"): {"message.max.bytes": "5"}}
    resolver = ConfigResolver(configure(), configs)
    resolver.invalidate(configs)
    assert resolver.broker("message.max.bytes") == 1_048_588


def test_a_listener_can_have_its_own_dynamic_value(configure: Configure) -> None:
    configs = {BROKER: {"listener.name.plaintext.max.connections": "9"}}
    resolver = ConfigResolver(configure(), configs)
    assert resolver.for_listener("PLAINTEXT", "max.connections") == 9
    assert resolver.for_listener("CONTROLLER", "max.connections") == 2**31 - 1


def test_dynamic_values_of_read_only_settings_have_no_effect(configure: Configure) -> None:
    changes = {BROKER: {"default.replication.factor": "9", "no.such.thing": "1"}}
    resolver = ConfigResolver(configure(), changes)
    assert resolver.broker("default.replication.factor") == 1


def test_an_invalid_stored_value_is_logged_and_ignored(
    configure: Configure, caplog: pytest.LogCaptureFixture
) -> None:
    configs = {ORDERS: {"retention.ms": "long", "segment.ms": "5", "gone": "1"}}
    with caplog.at_level(logging.WARNING):
        config = ConfigResolver(configure(), configs).topic("orders")
    assert config["retention.ms"] == 7 * 24 * 3_600_000
    assert config["segment.ms"] == 5
    assert "long for configuration retention.ms" in caplog.text


def test_settings_of_a_group_override_the_brokers(configure: Configure) -> None:
    configs = {(ConfigResourceType.GROUP, "billing"): {"consumer.session.timeout.ms": "46000"}}
    resolver = ConfigResolver(configure({"group.consumer.session.timeout.ms": "50000"}), configs)
    assert resolver.group("billing")["consumer.session.timeout.ms"] == 46_000
    assert resolver.group("other")["consumer.session.timeout.ms"] == 50_000
    assert resolver.group("other")["share.auto.offset.reset"] == "latest"


def test_thread_counts_can_at_most_double_from_the_effective_ones(configure: Configure) -> None:
    configs = {CLUSTER: {"log.cleaner.threads": "2"}, OTHER: {"log.cleaner.threads": "4"}}
    resolver = ConfigResolver(configure(), configs)
    resolver.validate_broker({"log.cleaner.threads": "8"}, broker_id=2)
    resolver.validate_broker({"log.cleaner.threads": "4"}, broker_id=None)
    with pytest.raises(InvalidConfigRequest, match="double the current value 2"):
        resolver.validate_broker({"log.cleaner.threads": "8"}, broker_id=1)


def test_changes_are_validated_with_the_effective_settings(configure: Configure) -> None:
    resolver = ConfigResolver(configure({"log.cleaner.max.compaction.lag.ms": "100"}), {})
    with pytest.raises(InvalidConfig, match=r"min.compaction.lag.ms \(200\) > max"):
        resolver.validate_topic({"min.compaction.lag.ms": "200"})
    with pytest.raises(InvalidConfig, match="Tiered Storage functionality is disabled"):
        resolver.validate_topic({"remote.storage.enable": "true"})
    with pytest.raises(InvalidConfigRequest, match=r"max\.connections\.per\.ip may be 0 only"):
        resolver.validate_broker({"max.connections.per.ip": "0"}, broker_id=1)
    with pytest.raises(InvalidConfig, match=r"group\.consumer\.max\.session"):
        resolver.validate_group({"consumer.session.timeout.ms": "99999999"})
