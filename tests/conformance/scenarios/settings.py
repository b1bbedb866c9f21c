"""Settings of topics and brokers: descriptions with their source, and changes at run time."""

from tests.conformance.clients.client import (
    AlterConfigsClient,
    Client,
    ConfigSource,
    ErrorCode,
    IncrementalAlterConfigsClient,
    SentRecord,
    raises_error,
)
from tests.wait import wait_until


class SettingScenarios:
    def test_settings_of_a_topic_are_described_with_their_source(
        self, client: Client, topic: str
    ) -> None:
        client.create_topic(topic, configs={"retention.ms": "3600000"})
        configs = client.topic_configs(topic)
        assert configs["retention.ms"].value == "3600000"
        assert configs["retention.ms"].source == ConfigSource.DYNAMIC_TOPIC
        assert configs["cleanup.policy"].value == "delete"
        assert configs["cleanup.policy"].source == ConfigSource.DEFAULT
        assert configs["max.message.bytes"].value == "1048588"
        assert not any(config.is_read_only or config.is_sensitive for config in configs.values())

    def test_a_brokers_settings_are_described(self, client: Client) -> None:
        (node,) = client.describe_cluster().brokers
        configs = client.broker_configs(node)
        assert configs["node.id"].value == str(node)
        assert configs["node.id"].is_read_only
        assert configs["log.dirs"].source == ConfigSource.STATIC_BROKER
        assert configs["num.partitions"].value == "1"
        assert not configs["log.retention.ms"].is_read_only
        assert configs["ssl.keystore.password"].is_sensitive
        assert configs["ssl.keystore.password"].value is None


class ReplaceScenarios:
    def test_replacing_settings_resets_all_others(
        self, client: AlterConfigsClient, topic: str
    ) -> None:
        client.create_topic(topic, configs={"retention.ms": "3600000", "segment.ms": "60000"})
        client.replace_topic_configs(topic, {"segment.ms": "70000"})
        wait_for_config(client, topic, "segment.ms", "70000")
        configs = client.topic_configs(topic)
        assert configs["retention.ms"].value == "604800000"
        assert configs["retention.ms"].source == ConfigSource.DEFAULT

    def test_an_invalid_replacement_is_rejected_and_changes_nothing(
        self, client: AlterConfigsClient, topic: str
    ) -> None:
        client.create_topic(topic, configs={"retention.ms": "3600000"})
        with raises_error(ErrorCode.INVALID_CONFIG):
            client.replace_topic_configs(topic, {"retention.ms": "never"})
        assert client.topic_configs(topic)["retention.ms"].value == "3600000"


class ChangeScenarios:
    def test_one_setting_is_changed_and_the_others_are_kept(
        self, client: IncrementalAlterConfigsClient, topic: str
    ) -> None:
        client.create_topic(topic, configs={"retention.ms": "3600000"})
        client.change_topic_config(topic, "segment.ms", "SET", "60000")
        wait_for_config(client, topic, "segment.ms", "60000")
        assert client.topic_configs(topic)["retention.ms"].value == "3600000"
        client.change_topic_config(topic, "retention.ms", "DELETE", None)
        wait_for_config(client, topic, "retention.ms", "604800000")
        assert client.topic_configs(topic)["retention.ms"].source == ConfigSource.DEFAULT

    def test_lists_are_appended_to_and_subtracted_from(
        self, client: IncrementalAlterConfigsClient, topic: str
    ) -> None:
        client.create_topic(topic)
        client.change_topic_config(topic, "cleanup.policy", "APPEND", "compact")
        wait_for_config(client, topic, "cleanup.policy", "delete,compact")
        client.change_topic_config(topic, "cleanup.policy", "SUBTRACT", "delete")
        wait_for_config(client, topic, "cleanup.policy", "compact")

    def test_an_invalid_change_is_rejected(
        self, client: IncrementalAlterConfigsClient, topic: str
    ) -> None:
        client.create_topic(topic)
        for name, operation, value in (
            ("retention.ms", "SET", "never"),
            ("no.such.setting", "SET", "1"),
            ("retention.ms", "APPEND", "1"),
        ):
            with raises_error(ErrorCode.INVALID_CONFIG):
                client.change_topic_config(topic, name, operation, value)

    def test_a_change_takes_effect_immediately(
        self, client: IncrementalAlterConfigsClient, topic: str
    ) -> None:
        client.create_topic(topic, configs={"max.message.bytes": "1000"})
        with raises_error(ErrorCode.MESSAGE_TOO_LARGE):
            client.produce(topic, [SentRecord(bytes(2000))])
        client.change_topic_config(topic, "max.message.bytes", "SET", "3000")
        wait_for_config(client, topic, "max.message.bytes", "3000")
        assert client.produce(topic, [SentRecord(bytes(2000))]) == [0]


def wait_for_config(client: Client, topic: str, name: str, value: str) -> None:
    """Waits until a change is applied: Kafka responds before its broker has applied it."""
    wait_until(
        lambda: client.topic_configs(topic)[name].value == value, f"{name} is {value}", poll_s=0.01
    )
