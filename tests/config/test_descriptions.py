"""DescribeConfigs: values, their sources and their synonyms.

The cases are responses of a real broker; test_peer_defaults.py compares every setting with one.
"""

from tests.config.conftest import Configure

from barnabas.config import ConfigResolver, ConfigResourceType, SettingType, broker, topic
from barnabas.config.descriptions import (
    DescribedSetting,
    SettingSource,
    SettingSynonym,
    describe_broker,
    describe_client_metrics,
    describe_cluster,
    describe_group,
    describe_topic,
)
from barnabas.config.documentation import find_documentation

BROKER = (ConfigResourceType.BROKER, "1")
CLUSTER = (ConfigResourceType.BROKER, "")
ORDERS = (ConfigResourceType.TOPIC, "orders")


def single(described: list[DescribedSetting]) -> DescribedSetting:
    (setting,) = described
    return setting


def test_synonyms_of_a_topic_setting_are_in_order_of_precedence(configure: Configure) -> None:
    resolver = ConfigResolver(
        configure({"log.retention.hours": "24"}),
        {ORDERS: {"retention.ms": "1000"}, BROKER: {"log.retention.ms": "7200000"}},
    )
    described = single(describe_topic(resolver, "orders", {"retention.ms"}))
    assert described == DescribedSetting(
        name="retention.ms",
        value="1000",
        source=SettingSource.TOPIC,
        synonyms=(
            SettingSynonym("retention.ms", "1000", SettingSource.TOPIC),
            SettingSynonym("log.retention.ms", "7200000", SettingSource.BROKER),
            SettingSynonym("log.retention.hours", "24", SettingSource.FILE),
            SettingSynonym("log.retention.hours", "168", SettingSource.DEFAULT),
        ),
        type=SettingType.LONG,
        read_only=False,
        sensitive=False,
    )


def test_a_value_in_another_unit_is_effective_but_not_a_synonym(configure: Configure) -> None:
    resolver = ConfigResolver(configure({"log.retention.hours": "24"}), {})
    described = single(describe_topic(resolver, "orders", {"retention.ms"}))
    assert (described.value, described.source, described.synonyms) == (
        "86400000",
        SettingSource.DEFAULT,
        (),
    )


def test_a_dynamic_value_hides_the_files_other_units(configure: Configure) -> None:
    resolver = ConfigResolver(
        configure({"log.retention.hours": "24"}), {BROKER: {"log.retention.ms": "1000"}}
    )
    hours = single(describe_broker(resolver, {"log.retention.hours"}))
    assert (hours.value, hours.source, hours.read_only) == ("168", SettingSource.FILE, True)


def test_internal_settings_of_a_topic_are_described_only_if_set(configure: Configure) -> None:
    plain = {
        described.name for described in describe_topic(ConfigResolver(configure(), {}), "orders")
    }
    assert plain == topic.SETTINGS.keys() - {"internal.segment.bytes"}
    resolver = ConfigResolver(configure(), {ORDERS: {"internal.segment.bytes": "100"}})
    assert len(describe_topic(resolver, "orders")) == len(topic.SETTINGS)


def test_a_broker_setting_has_all_its_sources_and_its_read_only_flag(configure: Configure) -> None:
    resolver = ConfigResolver(
        configure({"num.io.threads": "4"}),
        {BROKER: {"num.io.threads": "5"}, CLUSTER: {"num.io.threads": "6"}},
    )
    threads = single(describe_broker(resolver, {"num.io.threads"}))
    assert threads.synonyms == (
        SettingSynonym("num.io.threads", "5", SettingSource.BROKER),
        SettingSynonym("num.io.threads", "6", SettingSource.CLUSTER),
        SettingSynonym("num.io.threads", "4", SettingSource.FILE),
        SettingSynonym("num.io.threads", "8", SettingSource.DEFAULT),
    )
    assert not threads.read_only
    node_id = single(describe_broker(resolver, {"node.id"}))
    assert node_id.read_only
    assert node_id.synonyms == (SettingSynonym("node.id", "1", SettingSource.FILE),)


def test_a_broker_describes_all_public_and_all_explicit_settings(configure: Configure) -> None:
    resolver = ConfigResolver(
        configure({"some.unknown": "7", "log.initial.task.delay.ms": "1"}), {}
    )
    names = [described.name for described in describe_broker(resolver)]
    public = {name for name, setting in broker.SETTINGS.items() if not setting.internal}
    assert sorted(names) == sorted(public | {"some.unknown", "log.initial.task.delay.ms"})


def test_secrets_and_unknown_settings_are_never_shown(configure: Configure) -> None:
    resolver = ConfigResolver(
        configure(
            {
                "ssl.key.password": "hunter2",
                "listener.name.plaintext.ssl.key.password": "hunter2",
                "some.unknown": "hunter2",
            }
        ),
        {BROKER: {"listener.name.plaintext.ssl.keystore.password": "hunter2"}},
    )
    described = describe_broker(resolver)
    assert "hunter2" not in str(described)
    sensitive = {setting.name: setting.type for setting in described if setting.sensitive}
    assert sensitive["ssl.key.password"] is SettingType.PASSWORD
    assert sensitive["some.unknown"] is None
    assert sensitive["listener.name.plaintext.ssl.keystore.password"] is SettingType.PASSWORD


def test_a_listeners_value_falls_back_to_the_nodes(configure: Configure) -> None:
    name = "listener.name.plaintext.max.connections"
    resolver = ConfigResolver(configure({name: "500"}), {BROKER: {name: "99"}})
    described = single(describe_broker(resolver, {name}))
    assert described.value == "99"
    assert described.synonyms == (
        SettingSynonym(name, "99", SettingSource.BROKER),
        SettingSynonym(name, "500", SettingSource.FILE),
        SettingSynonym("max.connections", "2147483647", SettingSource.DEFAULT),
    )


def test_the_cluster_describes_only_its_dynamic_settings(configure: Configure) -> None:
    resolver = ConfigResolver(configure(), {CLUSTER: {"message.max.bytes": "5000"}})
    described = single(describe_cluster(resolver))
    assert described.synonyms == (
        SettingSynonym("message.max.bytes", "5000", SettingSource.CLUSTER),
    )
    assert describe_cluster(resolver, {"num.io.threads"}) == []


def test_a_groups_settings_fall_back_to_the_brokers(configure: Configure) -> None:
    resolver = ConfigResolver(
        configure({"group.consumer.session.timeout.ms": "50000"}),
        {(ConfigResourceType.GROUP, "g"): {"share.auto.offset.reset": "earliest"}},
    )
    timeout = single(describe_group(resolver, "g", {"consumer.session.timeout.ms"}))
    assert timeout.synonyms == (
        SettingSynonym("group.consumer.session.timeout.ms", "50000", SettingSource.FILE),
        SettingSynonym("group.consumer.session.timeout.ms", "45000", SettingSource.DEFAULT),
    )
    reset = single(describe_group(resolver, "g", {"share.auto.offset.reset"}))
    assert reset.synonyms == (
        SettingSynonym("share.auto.offset.reset", "earliest", SettingSource.GROUP),
        SettingSynonym("share.auto.offset.reset", "latest", SettingSource.DEFAULT),
    )


def test_client_metrics_have_no_inherited_synonyms(configure: Configure) -> None:
    resolver = ConfigResolver(
        configure(), {(ConfigResourceType.CLIENT_METRICS, "s"): {"metrics": "a,b"}}
    )
    interval, match, metrics = describe_client_metrics(resolver, "s")
    assert (interval.value, interval.source, interval.synonyms) == (
        "300000",
        SettingSource.DEFAULT,
        (),
    )
    assert (match.value, match.source) == ("", SettingSource.DEFAULT)
    assert metrics.synonyms == (SettingSynonym("metrics", "a,b", SettingSource.CLIENT_METRICS),)


def test_topic_settings_and_their_broker_synonyms_are_documented() -> None:
    for setting in topic.SETTINGS.values():
        if setting.internal:
            continue
        assert find_documentation(ConfigResourceType.TOPIC, setting.name)
        for synonym in setting.synonyms:
            assert find_documentation(ConfigResourceType.BROKER, synonym)
    prefixed = find_documentation(ConfigResourceType.BROKER, "listener.name.x.max.connections")
    assert prefixed == find_documentation(ConfigResourceType.BROKER, "max.connections")


def test_every_documented_setting_exists() -> None:
    from barnabas.config import client_metrics, documentation, group

    assert documentation._BROKER.keys() <= broker.SETTINGS.keys()
    assert documentation._TOPIC.keys() <= topic.SETTINGS.keys()
    assert documentation._GROUP.keys() == group.SETTINGS.keys()
    assert documentation._CLIENT_METRICS.keys() == client_metrics.SETTINGS.keys()
