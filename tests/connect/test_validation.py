from typing import Any

import pytest
from tests.connect.rest.plugins_of_tests import MODULE

from barnabas.connect.model import ConnectorKind, RequestFailedError
from barnabas.connect.validated_config import ValidatedConfig, shown_value
from barnabas.connect.validation import check_connector_config, resolve, validate

SINK = {"name": "x", "connector.class": f"{MODULE}:FileSink", "topics": "lines"}
SOURCE = {"name": "x", "connector.class": f"{MODULE}:FileSource", "topic": "lines"}
RENAME = {"transforms": "r", "transforms.r.type": f"{MODULE}:Rename", "transforms.r.to": "b"}


def errors_by_name(validated: ValidatedConfig) -> dict[str, list[str]]:
    return {
        setting.value.name: setting.value.errors
        for setting in validated.settings
        if setting.value.errors
    }


def errors(config: dict[str, Any], worker: dict[str, str] | None = None) -> dict[str, list[str]]:
    return errors_by_name(validate(config, worker))


def names(validated: ValidatedConfig, prefix: str) -> list[str]:
    found = [setting.value.name for setting in validated.settings]
    return [name.removeprefix(prefix) for name in found if name.startswith(prefix)]


def test_a_valid_config_has_a_kind() -> None:
    assert check_connector_config(SINK) is ConnectorKind.SINK
    assert check_connector_config(SOURCE) is ConnectorKind.SOURCE


def test_a_config_needs_a_class() -> None:
    with pytest.raises(
        RequestFailedError, match=r"Connector config \{name=x\} contains no connector"
    ):
        validate({"name": "x"})


def test_errors_of_all_parts_are_found_at_once() -> None:
    config = {
        **SOURCE,
        "topic": "forbidden",
        "batch.size": "0",
        "tasks.max": "many",
        "key.converter": "Nope",
        "transforms": "r",
        "transforms.r.type": f"{MODULE}:Rename",
        "transforms.r.limit": "x",
    }
    assert errors(config) == {
        "tasks.max": ["Invalid value many for configuration tasks.max: Not a number of type INT"],
        "key.converter": [
            "Invalid value Nope for configuration key.converter: Class Nope could not be found."
        ],
        "transforms.r.to": [
            'Missing required configuration "transforms.r.to" which has no default value.'
        ],
        "transforms.r.limit": [
            "Invalid value x for configuration transforms.r.limit: Not a number of type INT"
        ],
        "topic": ["That topic is forbidden"],
        "batch.size": ["Invalid value 0 for configuration batch.size: Value must be at least 1"],
    }


class TestNames:
    @pytest.mark.parametrize("name", ["a", "a b/c", "ü"])
    def test_may_be_almost_anything(self, name: str) -> None:
        assert errors({**SINK, "name": name}) == {}

    def test_are_required(self) -> None:
        config = {key: value for key, value in SINK.items() if key != "name"}
        assert errors(config) == {
            "name": ['Missing required configuration "name" which has no default value.']
        }

    def test_have_no_control_characters(self) -> None:
        (error,) = errors({**SINK, "name": "a\u0001b\u0002c"})["name"]
        assert error.endswith("had the following ASCII chars: 1, 2")


def test_no_setting_may_be_null() -> None:
    message = ["Null value can not be supplied as the configuration value."]
    assert errors({**SINK, "errors.tolerance": None, "file": None, "other": None}) == {
        "errors.tolerance": [
            "Invalid value null for configuration errors.tolerance: String must be one of: none, "
            "all",
            *message,
        ],
        "file": message,
        "other": message,
    }


class TestTopics:
    def test_a_sink_needs_topics_or_a_pattern(self) -> None:
        message = ["Must configure one of topics or topics.regex"]
        for topics in ("", " ", None):
            found = errors({**SINK, "topics": topics})
            assert found["topics"][:1] == found["topics.regex"] == message

    def test_a_sink_has_not_both(self) -> None:
        message = ["topics and topics.regex are mutually exclusive options, but both are set."]
        assert errors({**SINK, "topics.regex": "l.*"}) == {
            "topics": message,
            "topics.regex": message,
        }

    def test_a_pattern_has_to_be_valid(self) -> None:
        (error,) = errors({**SINK, "topics": "", "topics.regex": "a["})["topics.regex"]
        assert error.startswith("Invalid value a[ for configuration topics.regex: Invalid regex: ")

    def test_dead_letters_go_to_another_topic(self) -> None:
        queue = {"errors.deadletterqueue.topic.name": "lines"}
        assert errors({**SINK, **queue}) == {
            "topics": [
                "The DLQ topic 'lines' may not be included in the list of topics "
                "('topics=[lines]') consumed by the connector"
            ]
        }
        pattern = {"topics": "", "topics.regex": "l.*"}
        assert list(errors({**SINK, **queue, **pattern})) == ["topics.regex"]
        assert errors({**SINK, **queue, **pattern, "topics.regex": "line"}) == {}


class TestExactlyOnce:
    def test_has_to_be_enabled_if_it_is_required(self) -> None:
        config = {**SOURCE, "exactly.once.support": "Required"}
        assert errors(config) == {
            "exactly.once.support": [
                "This worker does not have exactly-once source support enabled."
            ]
        }
        assert errors(config, {"exactly.once.source.support": "enabled"}) == {}

    def test_connectors_define_no_transactions(self) -> None:
        (error,) = errors({**SOURCE, "transaction.boundary": "connector"})["transaction.boundary"]
        assert "does not support connector-defined transaction boundaries" in error

    def test_settings_are_checked(self) -> None:
        config = {
            "exactly.once.support": "x",
            "transaction.boundary": "y",
            "transaction.boundary.interval.ms": "-1",
            "offsets.storage.topic": " ",
        }
        prefix = "for configuration"
        assert errors({**SOURCE, **config}) == {
            "exactly.once.support": [
                f"Invalid value x {prefix} exactly.once.support: String must be one of (case "
                "insensitive): REQUIRED, REQUESTED"
            ],
            "transaction.boundary": [
                f"Invalid value y {prefix} transaction.boundary: String must be one of (case "
                "insensitive): INTERVAL, POLL, CONNECTOR"
            ],
            "transaction.boundary.interval.ms": [
                f"Invalid value -1 {prefix} transaction.boundary.interval.ms: Value must be at "
                "least 0"
            ],
            "offsets.storage.topic": [
                f"Invalid value  {prefix} offsets.storage.topic: String must be non-empty"
            ],
        }


class TestTransforms:
    def test_have_a_group_and_kafkas_order(self) -> None:
        validated = validate({**SINK, **RENAME})
        assert "Transforms: r" in validated.groups
        assert names(validated, "transforms.r.") == [
            "type",
            "plugin.version",
            "to",
            "negate",
            "predicate",
            "limit",
        ]

    def test_unknown_classes_and_missing_types(self) -> None:
        config = {"transforms": "a,b,a", "transforms.a.type": "RegexRooter"}
        found = errors({**SINK, **config})
        assert found == {
            "transforms": [
                "Invalid value [a, b, a] for configuration transforms: Duplicate alias provided."
            ],
            "transforms.a.type": [
                "Invalid value RegexRooter for configuration transforms.a.type: Class RegexRooter "
                "could not be found. Did you mean RegexRouter?"
            ],
            "transforms.b.type": [
                'Missing required configuration "transforms.b.type" which has no default value.'
            ],
        }

    def test_a_class_of_another_kind(self) -> None:
        found = errors({**SINK, **RENAME, "transforms.r.type": f"{MODULE}:FileSink"})
        (error,) = found["transforms.r.type"]
        assert error.endswith("does not implement the Transformation interface")

    def test_negate_needs_a_predicate(self) -> None:
        assert errors({**SINK, **RENAME, "transforms.r.negate": "true"}) == {
            "transforms.r.type": [
                "Config 'transforms.r.negate' was provided but there is no config "
                "'transforms.r.predicate' defining a predicate to be negated."
            ]
        }

    def test_a_predicate_has_to_exist(self) -> None:
        config = {**SINK, **RENAME, "transforms.r.predicate": "p"}
        assert list(errors(config)) == ["transforms.r.predicate"]
        config |= {"predicates": "p", "predicates.p.type": f"{MODULE}:IsBig"}
        assert list(errors(config)) == ["predicates.p.size"]
        assert errors({**config, "predicates.p.size": "3"}) == {}


class TestConverters:
    def test_the_workers_converter_is_the_default(self) -> None:
        validated = validate(SINK, {"key.converter": "String", "value.converter": "Json"})
        values = {setting.value.name: setting.value.value for setting in validated.settings}
        assert values["key.converter"] == "org.apache.kafka.connect.storage.StringConverter"
        assert names(validated, "key.converter.") == ["plugin.version"]

    def test_settings_count_if_the_converter_is_the_connectors(self) -> None:
        config = {
            **SINK,
            "value.converter": f"{MODULE}:TextConverter",
            "value.converter.encoding": "x",
        }
        validated = validate(config)
        assert "Text" in validated.groups
        assert names(validated, "value.converter.") == ["plugin.version", "encoding"]

    def test_a_class_of_another_kind(self) -> None:
        name = f"{MODULE}:Rename"
        assert errors({**SINK, "key.converter": name}) == {
            "key.converter": [f"Class {name} does not implement the Converter interface"]
        }


class TestTopicCreation:
    def test_needs_a_default_group(self) -> None:
        prefix = "topic.creation.default."
        assert list(errors({**SOURCE, f"{prefix}partitions": "0"})) == [
            f"{prefix}replication.factor",
            f"{prefix}partitions",
        ]
        valid = {f"{prefix}partitions": "3", f"{prefix}replication.factor": "-1"}
        assert errors({**SOURCE, **valid}) == {}

    def test_groups_inherit_from_the_default_group(self) -> None:
        config = {
            **SOURCE,
            "topic.creation.groups": "big",
            "topic.creation.default.partitions": "3",
            "topic.creation.default.replication.factor": "1",
            "topic.creation.big.include": "b.*,[",
        }
        validated = validate(config)
        assert list(errors_by_name(validated)) == ["topic.creation.big.include"]
        values = {setting.value.name: setting.value.value for setting in validated.settings}
        assert values["topic.creation.big.partitions"] == 3


LINGERING = {**SOURCE, "producer.override.linger.ms": "5"}


class TestOverrides:
    @pytest.mark.parametrize("policy", ["None", "Principal", "Allowlist"])
    def test_may_be_forbidden(self, policy: str) -> None:
        worker = {"connector.client.config.override.policy": policy}
        assert errors(LINGERING, worker) == {
            "producer.override.linger.ms": [
                f"The '{policy}' policy does not allow 'linger.ms' to be overridden in the "
                "connector configuration."
            ]
        }

    def test_may_be_allowed(self) -> None:
        assert errors(LINGERING) == {}
        worker = {
            "connector.client.config.override.policy": "Allowlist",
            "connector.client.config.override.allowlist": "acks, linger.ms",
        }
        assert errors(LINGERING, worker) == {}

    def test_have_valid_values(self) -> None:
        (error,) = errors({**SOURCE, "producer.override.linger.ms": "x"})[
            "producer.override.linger.ms"
        ]
        assert "linger.ms" in error

    def test_of_clients_that_are_not_used_are_ignored(self) -> None:
        assert errors({**SINK, "producer.override.linger.ms": "x"}) == {}
        assert errors({**SOURCE, "consumer.override.max.poll.records": "x"}) == {}

    @pytest.mark.parametrize("client", ["producer", "consumer", "admin"])
    def test_are_forbidden_for_clients_of_the_framework_too(self, client: str) -> None:
        name = f"{client}.override.bootstrap.servers"
        worker = {"connector.client.config.override.policy": "None"}
        assert name in errors({**SINK, name: "elsewhere:9092"}, worker)
        assert name in errors({**SOURCE, name: "elsewhere:9092"}, worker)

    def test_patterns_are_javas(self) -> None:
        assert errors({**SINK, "topics": "", "topics.regex": "\\p{Alpha}+"}) == {}

    def test_passwords_are_hidden(self) -> None:
        validated = validate({**SINK, "consumer.override.sasl.password": "secret"})
        assert "secret" not in str(validated.to_json())


class TestVersions:
    def test_only_the_installed_one_is_accepted(self) -> None:
        (error,) = errors(
            {**SINK, "key.converter.plugin.version": "3.7"}, {"key.converter": "Json"}
        )["key.converter.plugin.version"]
        assert "org.apache.kafka.connect.json.JsonConverter" in error


def test_references_to_config_providers_are_resolved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOPIC_OF_TESTS", "lines")
    worker = {
        "config.providers": "env",
        "config.providers.env.class": "org.apache.kafka.common.config.provider."
        "EnvVarConfigProvider",
    }
    config = {"topic": "${env:TOPIC_OF_TESTS}", "other": None}
    assert resolve(config, worker) == {"topic": "lines", "other": None}


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, None), (True, "true"), (["a", "b"], "a,b"), ([], ""), (3, "3"), ("x", "x")],
)
def test_values_are_shown_as_kafka_does(value: object, text: str | None) -> None:
    assert shown_value(value, None) == text
