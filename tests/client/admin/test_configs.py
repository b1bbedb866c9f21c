"""Settings, asked for and changed by an administrator."""

import pytest

from barnabas.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    KafkaError,
    ResourceType,
)


def described(admin: AdminClient, resource: ConfigResource) -> dict[str, ConfigEntry]:
    return admin.describe_configs([resource])[resource].result(30)


def alter(admin: AdminClient, resource: ConfigResource) -> None:
    admin.incremental_alter_configs([resource])[resource].result(30)


def test_single_configs_are_set_appended_to_and_deleted(admin: AdminClient, topic: str) -> None:
    resource = ConfigResource("topic", topic)
    resource.add_incremental_config(
        ConfigEntry("retention.ms", "1234", incremental_operation=AlterConfigOpType.SET)
    )
    resource.add_incremental_config(
        ConfigEntry("cleanup.policy", "compact", incremental_operation=AlterConfigOpType.APPEND)
    )
    alter(admin, resource)
    now = described(admin, resource)
    assert now["retention.ms"].value == "1234"
    assert now["retention.ms"].source == ConfigSource.DYNAMIC_TOPIC_CONFIG.value
    assert set((now["cleanup.policy"].value or "").split(",")) == {"delete", "compact"}

    gone = ConfigEntry("retention.ms", None, incremental_operation=AlterConfigOpType.DELETE)
    alter(admin, ConfigResource("topic", topic, incremental_configs=[gone]))
    after = described(admin, resource)["retention.ms"]
    assert (after.value, after.is_default) == ("604800000", True)


def test_a_config_entry_has_all_sources_of_its_value(admin: AdminClient, topic: str) -> None:
    longer = ConfigEntry("segment.bytes", "2097152", incremental_operation=AlterConfigOpType.SET)
    alter(admin, ConfigResource("topic", topic, incremental_configs=[longer]))
    entry = described(admin, ConfigResource("topic", topic))["segment.bytes"]
    assert [source.name for source in entry.sources] == ["segment.bytes", "log.segment.bytes"]
    assert entry.sources[0].value == "2097152"
    assert set(entry.synonyms) == {"segment.bytes", "log.segment.bytes"}
    assert all(source.is_synonym for source in entry.sources)


def test_alter_configs_replaces_all_configs(admin: AdminClient, topic: str) -> None:
    resource = ConfigResource(ResourceType.TOPIC, topic, set_config={"retention.ms": "1"})
    with pytest.deprecated_call():
        admin.alter_configs([resource])[resource].result(30)
    other = ConfigResource(ResourceType.TOPIC, topic, set_config={"segment.ms": "9999"})
    with pytest.deprecated_call():
        admin.alter_configs([other])[other].result(30)
    now = described(admin, resource)
    assert (now["retention.ms"].is_default, now["segment.ms"].value) == (True, "9999")


def test_several_brokers_are_described_in_one_call(admin: AdminClient) -> None:
    there, away = ConfigResource("broker", "1"), ConfigResource("broker", "9")
    answers = admin.describe_configs([there, away])
    assert answers[there].result(30)["node.id"].value == "1"
    error = answers[away].exception(30).args[0]
    assert (error, "broker 9" in error.str()) == (KafkaError._UNKNOWN_BROKER, True)


def test_the_empty_broker_name_has_cluster_wide_configs(admin: AdminClient) -> None:
    everybody = ConfigResource("broker", "")
    entry = ConfigEntry("log.retention.ms", "777000", incremental_operation=AlterConfigOpType.SET)
    alter(admin, ConfigResource("broker", "", incremental_configs=[entry]))
    assert described(admin, everybody)["log.retention.ms"].value == "777000"
    one = described(admin, ConfigResource("broker", "1"))["log.retention.ms"]
    assert one.source == ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG.value
    entry.incremental_operation = AlterConfigOpType.DELETE
    alter(admin, ConfigResource("broker", "", incremental_configs=[entry]))


def test_groups_have_configs(admin: AdminClient, name: str) -> None:
    resource = ConfigResource("group", name)
    entry = ConfigEntry(
        "consumer.session.timeout.ms", "50000", incremental_operation=AlterConfigOpType.SET
    )
    alter(admin, ConfigResource("group", name, incremental_configs=[entry]))
    assert described(admin, resource)["consumer.session.timeout.ms"].value == "50000"
    listed = admin.list_config_resources([ResourceType.GROUP]).result(30)
    assert resource in listed


def test_an_invalid_config_fails_its_own_resource_alone(admin: AdminClient, topic: str) -> None:
    def changing(restype: str, name: str, setting: str) -> ConfigResource:
        entry = ConfigEntry(setting, "5", incremental_operation=AlterConfigOpType.SET)
        return ConfigResource(restype, name, incremental_configs=[entry])

    right, wrong = changing("topic", topic, "retention.ms"), changing("group", "g", "nothing.ms")
    answers = admin.incremental_alter_configs([right, wrong])
    assert answers[right].result(30) is None
    assert answers[wrong].exception(30).args[0] == KafkaError.INVALID_CONFIG


def test_a_broker_resource_is_named_by_the_broker_id(admin: AdminClient) -> None:
    resource = ConfigResource("broker", "first")
    error = admin.describe_configs([resource])[resource].exception(30).args[0]
    assert error == KafkaError._INVALID_ARG


@pytest.mark.parametrize(
    "entry",
    [
        ConfigEntry("retention.ms", "5"),
        ConfigEntry("retention.ms", None, incremental_operation=AlterConfigOpType.SET),
    ],
)
def test_a_config_entry_needs_a_value_and_an_operation(
    admin: AdminClient, entry: ConfigEntry
) -> None:
    with pytest.raises(TypeError):
        admin.incremental_alter_configs([ConfigResource("topic", "t", incremental_configs=[entry])])


def test_an_empty_change_is_rejected(admin: AdminClient) -> None:
    with pytest.raises(ValueError, match="incremental_configs is empty"):
        admin.incremental_alter_configs([ConfigResource("topic", "t")])


def test_config_resources_compare_by_type_and_name() -> None:
    assert ConfigResource("topic", "t", {"a": "b"}) == ConfigResource(2, "t")
    assert len({ConfigResource("topic", "t"), ConfigResource("group", "t")}) == 2
    assert sorted([ConfigResource("broker", "1"), ConfigResource("topic", "t")])[0].name == "t"
    with pytest.raises(ValueError, match="not a ResourceType"):
        ConfigResource("tpoic", "t")
