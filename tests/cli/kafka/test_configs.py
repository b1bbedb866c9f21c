"""kafka-configs: every kind of entity, adding, deleting, describing."""

from pathlib import Path

import pytest
from tests.cli.kafka.conftest import Command, produce

from barnabas.testing import Broker


@pytest.fixture(scope="module", autouse=True)
def topic(broker: Broker) -> None:
    broker.create_topic("orders")


def test_commands_printed_in_books_run_unchanged(kafka: Command, broker: Broker) -> None:
    result = kafka("kafka-configs", "--alter", "--entity-type", "topics", "--entity-name", "orders",
                 "--add-config", "retention.ms=259200000")  # fmt: skip
    assert (result.status, result.out) == (0, "Completed updating config for topic orders.\n")
    result = kafka("kafka-configs", "--alter", "--entity-type", "brokers", "--entity-default",
                 "--add-config", "num.partitions=12")  # fmt: skip
    assert (result.status, result.out) == (
        0,
        "Completed updating default config for brokers in the cluster.\n",
    )
    kafka("kafka-topics", "--create", "--topic", "dozen")
    assert len(kafka("kafka-topics", "--describe", "--topic", "dozen").lines) == 13
    produce(broker, "dozen-on-first-use", 1)
    assert len(kafka("kafka-topics", "--describe", "--topic", "dozen-on-first-use").lines) == 13


def test_brackets_enclose_lists_and_configs_are_deleted(kafka: Command) -> None:
    added = "cleanup.policy=[compact,delete],segment.ms=100000,local.retention.ms=5000"
    result = kafka("kafka-configs", "--alter", "--topic", "orders", "--add-config", added)
    assert result.out == "Completed updating config for topic orders.\n"
    assert result.err.startswith("WARN local.retention.ms has no effect yet: ")
    described = kafka("kafka-configs", "--describe", "--topic", "orders").lines
    assert described[0] == "Dynamic configs for topic orders are:"
    assert (
        "  cleanup.policy=compact,delete sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:"
        "cleanup.policy=compact,delete, DEFAULT_CONFIG:log.cleanup.policy=delete}" in described
    )
    kafka("kafka-configs", "--alter", "--topic", "orders", "--delete-config",
          "cleanup.policy,segment.ms,local.retention.ms")  # fmt: skip
    assert "segment.ms" not in kafka("kafka-configs", "--describe", "--topic", "orders").out
    everything = kafka("kafka-configs", "--describe", "--topic", "orders", "--all").lines
    assert everything[0] == "All configs for topic orders are:"
    assert len(everything) == 34


def test_an_unknown_setting_of_a_broker_is_accepted_with_a_warning(kafka: Command) -> None:
    misspelt = ("--broker", "1", "--add-config", "log.retention.m=5")
    result = kafka("kafka-configs", "--alter", *misspelt)
    assert result.out == "Completed updating config for broker 1.\n"
    assert result.err == (
        "WARN log.retention.m is not a known setting and has no effect; "
        "did you mean log.retention.ms?\n"
    )


@pytest.mark.parametrize(
    ("entity", "named", "setting"),
    [
        (("--entity-type", "brokers", "--entity-name", "1"), "broker 1", "log.cleaner.threads=2"),
        (("--broker", "1"), "broker 1", "log.cleaner.threads=2"),
        (("--group", "readers"), "group readers", "consumer.session.timeout.ms=50000"),
        (("--client-metrics", "all"), "client-metric all", "interval.ms=1000"),
        (("--broker-logger", "1"), "broker-logger 1", "asyncio=ERROR"),
    ],
)
def test_configs_of_every_entity_type_are_altered_and_described(
    kafka: Command, entity: tuple[str, ...], named: str, setting: str
) -> None:
    result = kafka("kafka-configs", *entity, "--alter", "--add-config", setting)
    assert result.out == f"Completed updating config for {named}.\n"
    described = kafka("kafka-configs", *entity, "--describe").lines
    assert described[0] == f"Dynamic configs for {named} are:"
    assert any(line.startswith(f"  {setting} sensitive=false") for line in described)
    key = setting.partition("=")[0]
    assert kafka("kafka-configs", *entity, "--alter", "--delete-config", key).status == 0


def test_configs_are_added_from_a_file(kafka: Command, tmp_path: Path) -> None:
    file = tmp_path / "add.properties"
    file.write_text("max.message.bytes=2000000\nmin.insync.replicas = 1\n")
    kafka("kafka-configs", "--alter", "--topic", "orders", "--add-config-file", file)
    described = kafka("kafka-configs", "--describe", "--topic", "orders").out
    assert "max.message.bytes=2000000" in described
    assert "min.insync.replicas=1" in described


def test_an_entity_that_does_not_exist_has_no_configs(kafka: Command) -> None:
    result = kafka("kafka-configs", "--describe", "--topic", "nope")
    assert (result.status, result.out) == (
        0,
        "The topic 'nope' doesn't exist and doesn't have dynamic config.\n",
    )


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--describe",), "At least one entity type must be specified"),
        (("--describe", "--entity-type", "cats"), "Invalid entity type cats"),
        (("--alter", "--entity-type", "brokers", "--add-config", "a=b"), "must be specified with"),
        (("--alter", "--topic", "orders"), "At least one of --add-config"),
        (("--alter", "--topic", "orders", "--add-config", "a"), 'in the format "key=val"'),
        (("--alter", "--topic", "orders", "--add-config", "a$b=1"), "Invalid character found"),
        (("--alter", "--topic", "orders", "--add-config", "no.such=1"), "Unknown topic config"),
        (("--alter", "--topic", "nope", "--add-config", "segment.ms=100000"), "does not exist"),
        (("--alter", "--broker", "x", "--add-config", "a=b"), "must be a valid integer broker id"),
        (("--describe", "--topic", "t", "--entity-type", "topics"), "in conjunction with specific"),
        (("--alter", "--broker-logger", "1", "--add-config", "no.such=INFO"), "Invalid broker log"),
        (("--alter", "--user", "u", "--add-config", "retention.ms=1"), "Only quota and SCRAM"),
    ],
)
def test_invalid_arguments_are_reported_on_standard_error(
    kafka: Command, arguments: tuple[str, ...], expected: str
) -> None:
    result = kafka("kafka-configs", *arguments)
    assert (result.status, result.out) == (1, "")
    assert expected in result.err
