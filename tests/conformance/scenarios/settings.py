"""Settings of topics and brokers: described with their source, and changed while running."""

from tests.conformance.clients.client import (
    ChangesConfigs,
    Client,
    Code,
    ReplacesConfigs,
    Sent,
    Source,
    refused_with,
)
from tests.wait import wait_until


class SettingScenarios:
    def test_a_topics_settings_say_where_they_come_from(self, client: Client, topic: str) -> None:
        client.create_topic(topic, configs={"retention.ms": "3600000"})
        configs = client.topic_configs(topic)
        assert configs["retention.ms"].value == "3600000"
        assert configs["retention.ms"].source == Source.DYNAMIC_TOPIC
        assert configs["cleanup.policy"].value == "delete"
        assert configs["cleanup.policy"].source == Source.DEFAULT
        assert configs["max.message.bytes"].value == "1048588"
        assert not any(each.is_read_only or each.is_sensitive for each in configs.values())

    def test_a_brokers_settings_are_described(self, client: Client) -> None:
        (node,) = client.describe_cluster().brokers
        configs = client.broker_configs(node)
        assert configs["node.id"].value == str(node)
        assert configs["node.id"].is_read_only
        assert configs["log.dirs"].source == Source.STATIC_BROKER
        assert configs["num.partitions"].value == "1"
        assert not configs["log.retention.ms"].is_read_only
        assert configs["ssl.keystore.password"].is_sensitive
        assert configs["ssl.keystore.password"].value is None


class ReplaceScenarios:
    def test_replacing_settings_resets_what_is_not_named(
        self, client: ReplacesConfigs, topic: str
    ) -> None:
        client.create_topic(topic, configs={"retention.ms": "3600000", "segment.ms": "60000"})
        client.replace_topic_configs(topic, {"segment.ms": "70000"})
        settle(client, topic, "segment.ms", "70000")
        configs = client.topic_configs(topic)
        assert configs["retention.ms"].value == "604800000"
        assert configs["retention.ms"].source == Source.DEFAULT

    def test_a_bad_replacement_is_refused_and_changes_nothing(
        self, client: ReplacesConfigs, topic: str
    ) -> None:
        client.create_topic(topic, configs={"retention.ms": "3600000"})
        with refused_with(Code.INVALID_CONFIG):
            client.replace_topic_configs(topic, {"retention.ms": "never"})
        assert client.topic_configs(topic)["retention.ms"].value == "3600000"


class ChangeScenarios:
    def test_one_setting_is_changed_and_the_others_stay(
        self, client: ChangesConfigs, topic: str
    ) -> None:
        client.create_topic(topic, configs={"retention.ms": "3600000"})
        client.change_topic_config(topic, "segment.ms", "SET", "60000")
        settle(client, topic, "segment.ms", "60000")
        assert client.topic_configs(topic)["retention.ms"].value == "3600000"
        client.change_topic_config(topic, "retention.ms", "DELETE", None)
        settle(client, topic, "retention.ms", "604800000")
        assert client.topic_configs(topic)["retention.ms"].source == Source.DEFAULT

    def test_lists_are_appended_to_and_subtracted_from(
        self, client: ChangesConfigs, topic: str
    ) -> None:
        client.create_topic(topic)
        client.change_topic_config(topic, "cleanup.policy", "APPEND", "compact")
        settle(client, topic, "cleanup.policy", "delete,compact")
        client.change_topic_config(topic, "cleanup.policy", "SUBTRACT", "delete")
        settle(client, topic, "cleanup.policy", "compact")

    def test_a_bad_change_is_refused(self, client: ChangesConfigs, topic: str) -> None:
        client.create_topic(topic)
        for name, operation, value in (
            ("retention.ms", "SET", "never"),
            ("no.such.setting", "SET", "1"),
            ("retention.ms", "APPEND", "1"),
        ):
            with refused_with(Code.INVALID_CONFIG):
                client.change_topic_config(topic, name, operation, value)

    def test_a_change_takes_effect_at_once(self, client: ChangesConfigs, topic: str) -> None:
        client.create_topic(topic, configs={"max.message.bytes": "1000"})
        with refused_with(Code.MESSAGE_TOO_LARGE):
            client.produce(topic, [Sent(bytes(2000))])
        client.change_topic_config(topic, "max.message.bytes", "SET", "3000")
        settle(client, topic, "max.message.bytes", "3000")
        assert client.produce(topic, [Sent(bytes(2000))]) == [0]


def settle(client: Client, topic: str, name: str, value: str) -> None:
    """Wait for a change to arrive: Kafka answers before its broker has applied it."""
    wait_until(
        lambda: client.topic_configs(topic)[name].value == value, f"{name} is {value}", poll_s=0.01
    )
