"""Settings in force: topic, then broker, then cluster, then the file, then the default."""

import logging

import pytest
from tests.config.conftest import Configure

from barnabas.config import InvalidConfig, InvalidConfigRequest, Resolver, ResourceType

BROKER = (ResourceType.BROKER, "1")
CLUSTER = (ResourceType.BROKER, "")
ORDERS = (ResourceType.TOPIC, "orders")


def test_the_nearest_layer_wins(configure: Configure) -> None:
    configs: dict[tuple[int, str], dict[str, str]] = {}
    resolver = Resolver(configure({"message.max.bytes": "4000"}), configs)
    seen = [resolver.topic("orders")["max.message.bytes"]]
    for resource, name, value in (
        (CLUSTER, "message.max.bytes", "3000"),
        (BROKER, "message.max.bytes", "2000"),
        (ORDERS, "max.message.bytes", "1000"),
    ):
        configs[resource] = {name: value}
        resolver.changed([resource])
        seen.append(resolver.topic("orders")["max.message.bytes"])
    assert seen == [4000, 3000, 2000, 1000]
    assert resolver.topic("payments")["max.message.bytes"] == 2000
    assert resolver.broker("message.max.bytes") == 2000
    assert resolver.broker_config["message.max.bytes"] == 2000


def test_without_anything_a_topic_has_kafkas_defaults(configure: Configure) -> None:
    config = Resolver(configure(), {}).topic("orders")
    assert config["retention.ms"] == 7 * 24 * 3_600_000
    assert config["cleanup.policy"] == ("delete",)
    assert config["min.cleanable.dirty.ratio"] == 0.5


@pytest.mark.parametrize(
    ("given", "retention_ms"),
    [
        ({"log.retention.hours": "2"}, 7_200_000),
        ({"log.retention.hours": "2", "log.retention.minutes": "3"}, 180_000),
        ({"log.retention.minutes": "3", "log.retention.ms": "4"}, 4),
        ({"log.retention.hours": "-1"}, -1),
        ({"log.retention.ms": "-5"}, -1),
    ],
)
def test_milliseconds_beat_minutes_beat_hours(
    configure: Configure, given: dict[str, str | None], retention_ms: int
) -> None:
    assert Resolver(configure(given), {}).topic("orders")["retention.ms"] == retention_ms


def test_other_times_fall_back_too(configure: Configure) -> None:
    settings = configure({"log.roll.hours": "1", "log.flush.scheduler.interval.ms": "9"})
    config = Resolver(settings, {}).topic("orders")
    assert config["segment.ms"] == 3_600_000
    assert config["flush.ms"] == 9
    assert config["local.retention.ms"] == -2


def test_topics_without_settings_of_their_own_share_one_config(configure: Configure) -> None:
    resolver = Resolver(configure(), {ORDERS: {"retention.ms": "1"}})
    assert resolver.topic("a") is resolver.topic("b") is resolver.topic_defaults
    assert resolver.topic("orders") is resolver.topic("orders")


def test_a_change_to_one_topic_forgets_only_that_one(configure: Configure) -> None:
    other = (ResourceType.TOPIC, "other")
    configs = {ORDERS: {"retention.ms": "1"}, other: {"retention.ms": "2"}}
    resolver = Resolver(configure(), configs)
    kept = resolver.topic("other")
    assert resolver.topic("orders")["retention.ms"] == 1
    del configs[ORDERS]
    resolver.changed([ORDERS])
    assert resolver.topic("orders")["retention.ms"] == 7 * 24 * 3_600_000
    assert resolver.topic("other") is kept


def test_another_brokers_settings_are_not_ours(configure: Configure) -> None:
    configs = {(ResourceType.BROKER, "2"): {"message.max.bytes": "5"}}
    resolver = Resolver(configure(), configs)
    resolver.changed(configs)
    assert resolver.broker("message.max.bytes") == 1_048_588


def test_a_listener_can_have_its_own_dynamic_value(configure: Configure) -> None:
    configs = {BROKER: {"listener.name.plaintext.max.connections": "9"}}
    resolver = Resolver(configure(), configs)
    assert resolver.at_listener("PLAINTEXT", "max.connections") == 9
    assert resolver.at_listener("CONTROLLER", "max.connections") == 2**31 - 1


def test_what_cannot_change_at_run_time_does_not(configure: Configure) -> None:
    changes = {BROKER: {"default.replication.factor": "9", "no.such.thing": "1"}}
    resolver = Resolver(configure(), changes)
    assert resolver.broker("default.replication.factor") == 1


def test_a_bad_stored_value_is_logged_and_as_if_unset(
    configure: Configure, caplog: pytest.LogCaptureFixture
) -> None:
    configs = {ORDERS: {"retention.ms": "long", "segment.ms": "5", "gone": "1"}}
    with caplog.at_level(logging.WARNING):
        config = Resolver(configure(), configs).topic("orders")
    assert config["retention.ms"] == 7 * 24 * 3_600_000
    assert config["segment.ms"] == 5
    assert "long for configuration retention.ms" in caplog.text


def test_a_group_has_its_own_settings_over_the_brokers(configure: Configure) -> None:
    configs = {(ResourceType.GROUP, "billing"): {"consumer.session.timeout.ms": "46000"}}
    resolver = Resolver(configure({"group.consumer.session.timeout.ms": "50000"}), configs)
    assert resolver.group("billing")["consumer.session.timeout.ms"] == 46_000
    assert resolver.group("other")["consumer.session.timeout.ms"] == 50_000
    assert resolver.group("other")["share.auto.offset.reset"] == "latest"


def test_changes_are_judged_with_what_is_in_force(configure: Configure) -> None:
    resolver = Resolver(configure({"log.cleaner.max.compaction.lag.ms": "100"}), {})
    with pytest.raises(InvalidConfig, match=r"min.compaction.lag.ms \(200\) > max"):
        resolver.validate_topic({"min.compaction.lag.ms": "200"})
    with pytest.raises(InvalidConfig, match="Tiered storage is disabled"):
        resolver.validate_topic({"remote.storage.enable": "true"})
    with pytest.raises(InvalidConfigRequest, match=r"max\.connections\.per\.ip may be 0 only"):
        resolver.validate_broker({"max.connections.per.ip": "0"}, broker_id=1)
    with pytest.raises(InvalidConfig, match=r"group\.consumer\.max\.session"):
        resolver.validate_group({"consumer.session.timeout.ms": "99999999"})
