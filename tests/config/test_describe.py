"""What DescribeConfigs answers: values, where they come from, and what else could have given them.

The cases were read off a real broker; test_peer_defaults.py compares every setting with one.
"""

from tests.config.conftest import Configure

from barnabas.config import Resolver, ResourceType, Type, broker, topic
from barnabas.config.describe import (
    Described,
    Source,
    Synonym,
    describe_broker,
    describe_client_metrics,
    describe_cluster,
    describe_group,
    describe_topic,
)
from barnabas.config.documentation import documentation

BROKER = (ResourceType.BROKER, "1")
CLUSTER = (ResourceType.BROKER, "")
ORDERS = (ResourceType.TOPIC, "orders")


def only(described: list[Described]) -> Described:
    (one,) = described
    return one


def test_a_topics_value_lists_its_synonyms_nearest_first(configure: Configure) -> None:
    resolver = Resolver(
        configure({"log.retention.hours": "24"}),
        {ORDERS: {"retention.ms": "1000"}, BROKER: {"log.retention.ms": "7200000"}},
    )
    described = only(describe_topic(resolver, "orders", {"retention.ms"}))
    assert described == Described(
        name="retention.ms",
        value="1000",
        source=Source.TOPIC,
        synonyms=(
            Synonym("retention.ms", "1000", Source.TOPIC),
            Synonym("log.retention.ms", "7200000", Source.BROKER),
            Synonym("log.retention.hours", "24", Source.FILE),
            Synonym("log.retention.hours", "168", Source.DEFAULT),
        ),
        type=Type.LONG,
        read_only=False,
        sensitive=False,
    )


def test_a_value_in_another_unit_is_in_force_but_not_told_of(configure: Configure) -> None:
    resolver = Resolver(configure({"log.retention.hours": "24"}), {})
    described = only(describe_topic(resolver, "orders", {"retention.ms"}))
    assert (described.value, described.source, described.synonyms) == (
        "86400000",
        Source.DEFAULT,
        (),
    )


def test_a_dynamic_value_hides_the_files_other_units(configure: Configure) -> None:
    resolver = Resolver(
        configure({"log.retention.hours": "24"}), {BROKER: {"log.retention.ms": "1000"}}
    )
    hours = only(describe_broker(resolver, {"log.retention.hours"}))
    assert (hours.value, hours.source, hours.read_only) == ("168", Source.FILE, True)


def test_a_topic_has_every_setting_but_internal_ones_nobody_set(configure: Configure) -> None:
    plain = {described.name for described in describe_topic(Resolver(configure(), {}), "orders")}
    assert plain == topic.SETTINGS.keys() - {"internal.segment.bytes"}
    resolver = Resolver(configure(), {ORDERS: {"internal.segment.bytes": "100"}})
    assert len(describe_topic(resolver, "orders")) == len(topic.SETTINGS)


def test_a_broker_tells_its_layers_and_whether_a_setting_can_change(configure: Configure) -> None:
    resolver = Resolver(
        configure({"num.io.threads": "4"}),
        {BROKER: {"num.io.threads": "5"}, CLUSTER: {"num.io.threads": "6"}},
    )
    threads = only(describe_broker(resolver, {"num.io.threads"}))
    assert threads.synonyms == (
        Synonym("num.io.threads", "5", Source.BROKER),
        Synonym("num.io.threads", "6", Source.CLUSTER),
        Synonym("num.io.threads", "4", Source.FILE),
        Synonym("num.io.threads", "8", Source.DEFAULT),
    )
    assert not threads.read_only
    node_id = only(describe_broker(resolver, {"node.id"}))
    assert node_id.read_only
    assert node_id.synonyms == (Synonym("node.id", "1", Source.FILE),)


def test_a_broker_describes_all_it_knows_and_all_it_was_given(configure: Configure) -> None:
    resolver = Resolver(configure({"some.unknown": "7", "log.initial.task.delay.ms": "1"}), {})
    names = [described.name for described in describe_broker(resolver)]
    public = {name for name, setting in broker.SETTINGS.items() if not setting.internal}
    assert sorted(names) == sorted(public | {"some.unknown", "log.initial.task.delay.ms"})


def test_secrets_and_unknown_settings_are_never_shown(configure: Configure) -> None:
    resolver = Resolver(
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
    sensitive = {each.name: each.type for each in described if each.sensitive}
    assert sensitive["ssl.key.password"] is Type.PASSWORD
    assert sensitive["some.unknown"] is None
    assert sensitive["listener.name.plaintext.ssl.keystore.password"] is Type.PASSWORD


def test_a_listeners_value_falls_back_to_the_nodes(configure: Configure) -> None:
    name = "listener.name.plaintext.max.connections"
    resolver = Resolver(configure({name: "500"}), {BROKER: {name: "99"}})
    described = only(describe_broker(resolver, {name}))
    assert described.value == "99"
    assert described.synonyms == (
        Synonym(name, "99", Source.BROKER),
        Synonym(name, "500", Source.FILE),
        Synonym("max.connections", "2147483647", Source.DEFAULT),
    )


def test_the_cluster_has_only_what_was_set_for_it(configure: Configure) -> None:
    resolver = Resolver(configure(), {CLUSTER: {"message.max.bytes": "5000"}})
    described = only(describe_cluster(resolver))
    assert described.synonyms == (Synonym("message.max.bytes", "5000", Source.CLUSTER),)
    assert describe_cluster(resolver, {"num.io.threads"}) == []


def test_a_groups_settings_fall_back_to_the_brokers(configure: Configure) -> None:
    resolver = Resolver(
        configure({"group.consumer.session.timeout.ms": "50000"}),
        {(ResourceType.GROUP, "g"): {"share.auto.offset.reset": "earliest"}},
    )
    timeout = only(describe_group(resolver, "g", {"consumer.session.timeout.ms"}))
    assert timeout.synonyms == (
        Synonym("group.consumer.session.timeout.ms", "50000", Source.FILE),
        Synonym("group.consumer.session.timeout.ms", "45000", Source.DEFAULT),
    )
    reset = only(describe_group(resolver, "g", {"share.auto.offset.reset"}))
    assert reset.synonyms == (
        Synonym("share.auto.offset.reset", "earliest", Source.GROUP),
        Synonym("share.auto.offset.reset", "latest", Source.DEFAULT),
    )


def test_client_metrics_tell_only_their_own(configure: Configure) -> None:
    resolver = Resolver(configure(), {(ResourceType.CLIENT_METRICS, "s"): {"metrics": "a,b"}})
    interval, match, metrics = describe_client_metrics(resolver, "s")
    assert (interval.value, interval.source, interval.synonyms) == ("300000", Source.DEFAULT, ())
    assert (match.value, match.source) == ("", Source.DEFAULT)
    assert metrics.synonyms == (Synonym("metrics", "a,b", Source.CLIENT_METRICS),)


def test_every_topic_setting_is_documented_and_its_broker_synonyms_with_it() -> None:
    for setting in topic.SETTINGS.values():
        if setting.internal:
            continue
        assert documentation(ResourceType.TOPIC, setting.name)
        for synonym in setting.synonyms:
            assert documentation(ResourceType.BROKER, synonym)
    prefixed = documentation(ResourceType.BROKER, "listener.name.x.max.connections")
    assert prefixed == documentation(ResourceType.BROKER, "max.connections")


def test_documentation_is_only_of_settings_that_exist() -> None:
    from barnabas.config import client_metrics, documentation, group

    assert documentation._BROKER.keys() <= broker.SETTINGS.keys()
    assert documentation._TOPIC.keys() <= topic.SETTINGS.keys()
    assert documentation._GROUP.keys() == group.SETTINGS.keys()
    assert documentation._CLIENT_METRICS.keys() == client_metrics.SETTINGS.keys()
