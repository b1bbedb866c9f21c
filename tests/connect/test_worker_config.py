"""The settings of a worker: defaults, all errors at once, and what others get of them."""

import pytest

from barnabas.connect.worker_config import WorkerConfig, WorkerConfigError


def problems(**properties: str) -> list[str]:
    named = {name.replace("_", "."): value for name, value in properties.items()}
    with pytest.raises(WorkerConfigError) as raised:
        WorkerConfig.parse(named)
    return raised.value.problems


def test_a_worker_needs_no_settings() -> None:
    config = WorkerConfig.parse({})
    assert config.bootstrap_servers == "localhost:9092"
    assert config.group_id == "connect-cluster"
    topics = config.config_topic, config.offset_topic, config.status_topic
    assert topics == ("connect-configs", "connect-offsets", "connect-status")
    assert not config.exactly_once
    assert config.listener.port == 8083
    assert config.originals["value.converter"] == "org.apache.kafka.connect.json.JsonConverter"
    assert config.notes == []


def test_the_example_file_of_kafka_is_accepted() -> None:
    config = WorkerConfig.parse(
        {
            "bootstrap.servers": "a:9092,b:9092",
            "group.id": "etl",
            "key.converter": "org.apache.kafka.connect.json.JsonConverter",
            "value.converter": "org.apache.kafka.connect.json.JsonConverter",
            "key.converter.schemas.enable": "true",
            "value.converter.schemas.enable": "true",
            "offset.storage.topic": "o",
            "offset.storage.replication.factor": "1",
            "offset.storage.partitions": "7",
            "config.storage.topic": "c",
            "config.storage.replication.factor": "-1",
            "status.storage.topic": "s",
            "status.storage.min.insync.replicas": "2",
            "offset.flush.interval.ms": "10000",
            "listeners": "http://:8085",
            "rest.advertised.host.name": "worker1",
            "rest.advertised.port": "80",
        }
    )
    assert config.bootstrap_servers == "a:9092,b:9092"
    assert (config.storage("offset").name, config.storage("offset").partitions) == ("o", 7)
    assert config.storage("config").replication_factor == -1
    assert config.storage("status").configs == {"min.insync.replicas": "2"}
    assert config.advertised_address(8085) == ("worker1", 80)
    assert config.notes == []


def test_all_errors_are_found_at_once() -> None:
    assert problems(
        session_timeout_ms="x", offset_storage_partitions="0", barnabas_restrt_max_ms="1"
    ) == [
        "Invalid value x for configuration session.timeout.ms: Not a number of type INT",
        "Invalid value 0 for configuration offset.storage.partitions: must be at least 1, or -1 "
        "for the default of the brokers",
        "barnabas.restrt.max.ms is not a setting of a worker; did you mean "
        "barnabas.restart.max.ms?",
    ]


def test_rules_between_settings_are_checked() -> None:
    assert problems(
        config_storage_topic="t",
        status_storage_topic="t",
        listeners="nowhere",
        heartbeat_interval_ms="10000",
        consumer_fetch_min_bites="1",
        connector_client_config_override_policy="Some",
    ) == [
        "listeners is nowhere; it must be one address, such as https://0.0.0.0:8083",
        "Invalid value Some for configuration connector.client.config.override.policy: it must "
        "be one of All, None, Principal, Allowlist",
        "config.storage.topic, offset.storage.topic and status.storage.topic must be three "
        "topics, not t, connect-offsets, t",
        "heartbeat.interval.ms must be less than session.timeout.ms",
        'No such configuration property: "fetch.min.bites"; did you mean "fetch.min.bytes"?',
    ]
    assert problems(rest_extension_classes="java.Security") == [
        "rest.extension.classes is not supported: remove it"
    ]
    assert problems(listeners="https://:8083") == [
        "listeners has https, which needs listeners.https.ssl.keystore.location"
    ]


def test_what_has_no_effect_is_noted_with_the_nearest_name() -> None:
    config = WorkerConfig.parse(
        {
            "plugin.path": "/usr/share/java",
            "offset.storage.file.filename": "/tmp/connect.offsets",
            "offset.storage.topik": "o",
        }
    )
    plugins, file, unknown = config.notes
    assert "Python packages" in plugins
    assert "positions are kept in topic connect-offsets" in file
    assert unknown == (
        "offset.storage.topik is not a setting of a worker; did you mean offset.storage.topic?"
    )


def test_clients_inherit_the_settings_of_the_worker_and_have_their_own() -> None:
    config = WorkerConfig.parse(
        {
            "bootstrap.servers": "a:9092",
            "group.id": "etl",
            "session.timeout.ms": "20000",
            "security.protocol": "PLAINTEXT",
            "producer.linger.ms": "7",
            "consumer.max.poll.records": "10",
            "admin.client.id": "me",
        }
    )
    inherited = {"bootstrap.servers": "a:9092", "security.protocol": "PLAINTEXT"}
    assert config.worker_client == inherited
    assert config.client("producer") == {**inherited, "linger.ms": "7"}
    assert config.client("consumer") == {**inherited, "max.poll.records": "10"}
    assert config.client("admin") == {**inherited, "client.id": "me"}


def test_references_to_providers_are_resolved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONNECT_TEST_GROUP", "from-env")
    provider = "org.apache.kafka.common.config.provider.EnvVarConfigProvider"
    config = WorkerConfig.parse(
        {
            "config.providers": "env",
            "config.providers.env.class": provider,
            "group.id": "${env:CONNECT_TEST_GROUP}",
        }
    )
    assert config.group_id == "from-env"
    assert config.originals["config.providers"] == "env"


def test_tls_of_the_listener_has_names_of_its_own() -> None:
    config = WorkerConfig.parse(
        {"ssl.truststore.location": "shared", "listeners.https.ssl.truststore.location": "own"}
        | {"ssl.truststore.type": "PEM"}
        | {"security.protocol": "PLAINTEXT"}
    )
    assert config.tls_properties == {
        "ssl.truststore.location": "own",
        "ssl.truststore.type": "PEM",
    }


def test_exactly_once_is_a_setting_of_the_worker() -> None:
    assert WorkerConfig.parse({"exactly.once.source.support": "ENABLED"}).exactly_once
    assert not WorkerConfig.parse({"exactly.once.source.support": "preparing"}).exactly_once
