"""Validation of the settings of a resource; the results are those of the real Kafka."""

import pytest
from tests.config.conftest import Configure

from barnabas.config import (
    InvalidConfig,
    InvalidConfigRequest,
    validate_broker,
    validate_client_metrics,
    validate_group,
    validate_topic,
)


@pytest.mark.parametrize(
    "configs",
    [
        {},
        {"retention.ms": "-1"},
        {"cleanup.policy": ""},
        {"cleanup.policy": "compact,compact"},
        {"max.message.bytes": " 10 "},
        {"unclean.leader.election.enable": "TRUE"},
        {"internal.segment.bytes": "100"},
        {"local.retention.ms": "99999999999"},
        {"local.retention.bytes": "5", "retention.bytes": "4"},
        {"retention.bytes": "-9"},
        {"follower.replication.throttled.replicas": "*"},
    ],
)
def test_a_topic_can_have_valid_settings(configs: dict[str, str | None]) -> None:
    validate_topic(configs)


@pytest.mark.parametrize(
    ("configs", "message"),
    [
        ({"bogus": "1"}, "Unknown topic config name: bogus"),
        (
            {"retention.m": "1"},
            "Unknown topic config name: retention.m; did you mean retention.ms?",
        ),
        (
            {"message.format.version": "3.0"},
            "Unknown topic config name: message.format.version; Kafka has removed it: "
            "there is only record format v2",
        ),
        ({"retention.ms": None}, "Null value not supported for topic configs: retention.ms"),
        ({"retention.ms": ""}, "Not a number of type LONG"),
        ({"retention.ms": "-5"}, "Invalid value -5 for configuration retention.ms"),
        ({"cleanup.policy": "compact,"}, "must not be empty"),
        ({"segment.bytes": "100"}, "at least 1048576"),
        ({"compression.type": "none"}, "must be one of: uncompressed"),
        ({"min.compaction.lag.ms": "10", "max.compaction.lag.ms": "5"}, "(10) > max.compaction"),
        ({"remote.storage.enable": "true"}, "Tiered Storage functionality is disabled"),
    ],
)
def test_invalid_settings_of_a_topic_raise_an_error(
    configs: dict[str, str | None], message: str
) -> None:
    with pytest.raises(InvalidConfig) as raised:
        validate_topic(configs)
    assert message in str(raised.value)
    assert not isinstance(raised.value, InvalidConfigRequest)


@pytest.mark.parametrize(
    ("configs", "message"),
    [
        ({}, None),
        ({"cleanup.policy": "compact,delete"}, "without compact"),
        ({"local.retention.ms": "700000000"}, "not be more than retention.ms (604800000)"),
        ({"local.retention.ms": "-1"}, "not be more than retention.ms"),
        ({"local.retention.ms": "-1", "retention.ms": "-1"}, None),
        ({"local.retention.bytes": "10", "retention.bytes": "5"}, "local.retention.bytes"),
        ({"remote.log.copy.disable": "true"}, None),
        ({"remote.log.copy.disable": "true", "local.retention.ms": "5"}, "must be the same"),
    ],
)
def test_local_retention_of_a_tiered_topic_cannot_exceed_its_retention(
    configs: dict[str, str | None], message: str | None
) -> None:
    tiered = {"remote.storage.enable": "true", **configs}
    if message is None:
        validate_topic(tiered, tiered_storage=True)
        return
    with pytest.raises(InvalidConfig) as raised:
        validate_topic(tiered, tiered_storage=True)
    assert message in str(raised.value)


@pytest.mark.parametrize(
    ("broker_id", "configs"),
    [
        (1, {"log.retention.ms": "-1"}),
        (None, {"num.io.threads": "8"}),
        (None, {"num.io.threads": "16", "log.cleaner.threads": "2"}),
        (1, {"num.io.threads": "4"}),
        (1, {"bogus": "1"}),
        (1, {"listener.name.plaintext.ssl.keystore.location": "/x"}),
        (None, {"listener.name.plaintext.max.connections": "5"}),
        (1, {"sasl.enabled.mechanisms": "PLAIN"}),
        (1, {"leader.replication.throttled.rate": "1"}),
        (1, {"cordoned.log.dirs": "*"}),
        (None, {"num.partitions": "12"}),
    ],
)
def test_a_broker_can_have_valid_settings(
    configure: Configure, broker_id: int | None, configs: dict[str, str | None]
) -> None:
    validate_broker(configs, broker_id=broker_id, settings=configure())


@pytest.mark.parametrize(
    ("broker_id", "configs", "message"),
    [
        (
            1,
            {"log.retention.hours": "5"},
            "Cannot update these configs dynamically: [log.retention",
        ),
        (1, {"num.io.threads": "0"}, "Invalid value 0 for configuration num.io.threads"),
        (1, {"log.cleaner.threads": "0"}, "log.cleaner.threads (0) must be at least 1"),
        (None, {"log.cleaner.threads": "3"}, "greater than double the current value 1"),
        (1, {"num.io.threads": "3"}, "num.io.threads=3, value should be at least half the current"),
        (1, {"ssl.keystore.location": "/x"}, "only per-listener"),
        (None, {"listeners": "PLAINTEXT://:1"}, "broker id must be specified: [listeners]"),
        (None, {"listener.name.plaintext.ssl.keystore.type": "x"}, "broker id must be specified"),
        (1, {"log.retention.ms": "0"}, "log.retention.ms (0) must be -1 or at least 1"),
        (1, {"listeners": "PLAINTEXT://127.0.0.1:1"}, "controller.listener.names"),
        (1, {"leader.replication.throttled.rate": "-1"}, "at least 0"),
        (1, {"cordoned.log.dirs": "/x"}, "/x"),
        (1, {"log.local.retention.ms": "9", "log.retention.ms": "5"}, "log.retention.ms (5)"),
        (1, {"message.max.bytes": None}, "Null value not supported for : message.max.bytes"),
    ],
)
def test_invalid_settings_of_a_broker_raise_an_error(
    configure: Configure, broker_id: int | None, configs: dict[str, str | None], message: str
) -> None:
    with pytest.raises(InvalidConfigRequest) as raised:
        validate_broker(configs, broker_id=broker_id, settings=configure())
    assert message in str(raised.value)


def test_the_error_of_an_invalid_password_does_not_show_it(configure: Configure) -> None:
    with pytest.raises(InvalidConfigRequest) as raised:
        validate_broker({"ssl.key.password": "hunter2"}, broker_id=1, settings=configure())
    assert "hunter2" not in str(raised.value)


@pytest.mark.parametrize(
    ("configs", "message"),
    [
        ({"consumer.heartbeat.interval.ms": "15000"}, None),
        ({"share.auto.offset.reset": "by_duration:PT1H30M"}, None),
        ({"bogus": "1"}, "Unknown group config name: bogus"),
        ({"consumer.session.timeout.ms": "1"}, "group.consumer.min.session.timeout.ms"),
        ({"consumer.session.timeout.ms": "99999999"}, "group.consumer.max.session.timeout.ms"),
        ({"share.record.lock.duration.ms": "5000000"}, "group.share.max.record.lock.duration.ms"),
        ({"share.delivery.count.limit": "20"}, "group.share.max.delivery.count.limit"),
        ({"streams.num.standby.replicas": "3"}, "group.streams.max.standby.replicas"),
        ({"streams.initial.rebalance.delay.ms": "-1"}, "at least 0"),
        ({"share.isolation.level": "x"}, "read_committed, read_uncommitted"),
    ],
)
def test_settings_of_a_group_are_within_the_brokers_bounds(
    configure: Configure, configs: dict[str, str | None], message: str | None
) -> None:
    if message is None:
        validate_group(configs, configure())
        validate_group(configs)
        return
    with pytest.raises(InvalidConfig) as raised:
        validate_group(configs, configure())
    assert message in str(raised.value)


def test_the_heartbeat_interval_of_a_group_is_below_its_session_timeout(
    configure: Configure,
) -> None:
    loose = configure(
        {
            "group.consumer.max.heartbeat.interval.ms": "60000",
            "group.consumer.max.session.timeout.ms": "60000",
        }
    )
    with pytest.raises(InvalidConfig, match="must be less than"):
        validate_group({"consumer.heartbeat.interval.ms": "45000"}, loose)


@pytest.mark.parametrize(
    ("configs", "error", "message"),
    [
        ({"metrics": "*", "interval.ms": "100", "match": "client_id=a.*"}, None, ""),
        ({"metrics": ""}, None, ""),
        ({"bogus": "1"}, InvalidConfigRequest, "Unknown client metrics configuration: bogus"),
        ({"interval.ms": "5"}, InvalidConfigRequest, "between 100 and 3600000"),
        ({"match": "foo=bar"}, InvalidConfig, "Illegal client matching pattern: foo=bar"),
        ({"match": "client_id=["}, InvalidConfig, "Illegal client matching pattern: client_id=["),
        ({"match": "client_id="}, InvalidConfig, "Illegal client matching pattern"),
    ],
)
def test_client_metrics_subscriptions_are_validated(
    configs: dict[str, str | None], error: type[Exception] | None, message: str
) -> None:
    if error is None:
        validate_client_metrics(configs)
        return
    with pytest.raises(error) as raised:
        validate_client_metrics(configs)
    assert message in str(raised.value)
