"""kafka-topics: its actions, what they print, and what is refused."""

import re

import pytest
from tests.cli.kafka.conftest import Command

from barnabas.cli.operations import setting_warnings
from barnabas.testing import Broker


def test_a_topic_is_created_listed_described_altered_and_deleted(kafka: Command) -> None:
    settings = ("--config", "retention.ms=60000", "--config", "local.retention.ms=5000")
    made = kafka("kafka-topics", "--create", "--topic", "orders", "--partitions", 2, *settings)
    assert (made.status, made.out) == (0, "Created topic orders.\n")
    assert made.err == (
        "WARN local.retention.ms has no effect yet: there is no tiered storage, and all segments "
        "stay on this broker\n"
    )
    assert kafka("kafka-topics", "--list").lines == ["orders"]
    described = kafka("kafka-topics", "--describe", "--topic", "orders").lines
    assert re.fullmatch(
        r"Topic: orders\tTopicId: [\w-]{22}\tPartitionCount: 2\tReplicationFactor: 1\t"
        r"Configs: .*retention.ms=60000.*",
        described[0],
    )
    assert described[1] == (
        "\tTopic: orders\tPartition: 0\tLeader: 1\tReplicas: 1\tIsr: 1\tElr: \tLastKnownElr: "
    )
    assert kafka("kafka-topics", "--alter", "--topic", "orders", "--partitions", 3).out == ""
    assert len(kafka("kafka-topics", "--describe", "--topic", "orders").lines) == 4
    assert kafka("kafka-topics", "-delete", "-topic", "orders").status == 0
    assert kafka("kafka-topics", "--list").out == "\n"


def test_settings_of_kafkas_brokers_are_no_warnings(
    kafka: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(setting_warnings, "OWN_SETTING", "a.setting.that.the.broker.does.not.have")
    made = kafka(
        "kafka-topics", "--create", "--topic", "table", "--config", "local.retention.ms=5000"
    )
    assert (made.out, made.err) == ("Created topic table.\n", "")
    kafka("kafka-topics", "--delete", "--topic", "table")


def test_a_regular_expression_selects_topics(kafka: Command, broker: Broker) -> None:
    for name in "a-1", "a-2", "b":
        broker.create_topic(name)
    assert kafka("kafka-topics", "--list", "--topic", "a-.*").lines == ["a-1", "a-2"]
    assert kafka("kafka-topics", "--list", "--topic", "a-1,b").lines == ["a-1", "b"]
    kafka("kafka-topics", "--delete", "--topic", "a-.*|b")
    assert kafka("kafka-topics", "--list").out == "\n"


def test_if_exists_and_if_not_exists_suppress_errors(kafka: Command, broker: Broker) -> None:
    broker.create_topic("there")
    again = kafka("kafka-topics", "--create", "--topic", "there")
    assert (again.status, again.out) == (
        1,
        "Error while executing topic command : Topic 'there' already exists.\n",
    )
    unless = kafka("kafka-topics", "--create", "--topic", "there", "--if-not-exists")
    assert (unless.status, unless.out) == (0, "")
    gone = kafka("kafka-topics", "--delete", "--topic", "nope")
    assert (gone.status, gone.out) == (
        1,
        "Error while executing topic command : Topic 'nope' does not exist as expected\n",
    )
    assert kafka("kafka-topics", "--delete", "--topic", "nope", "--if-exists").status == 0
    kafka("kafka-topics", "--delete", "--topic", "there")


def test_a_topic_name_with_a_dot_prints_a_warning(kafka: Command) -> None:
    result = kafka("kafka-topics", "--create", "--topic", "a.b")
    assert result.lines[0].startswith("WARNING: Due to limitations in metric names")
    kafka("kafka-topics", "--delete", "--topic", "a.b")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((), "exactly one action"),
        (("--list", "--create"), "exactly one action"),
        (("--create",), 'Missing required argument "[topic]"'),
        (("--alter", "--topic", "t"), 'Missing required argument "[partitions]"'),
        (("--list", "--partitions", "3"), 'can\'t be used with option "[list]"'),
        (("--describe", "--if-not-exists"), 'can\'t be used with option "[describe]"'),
        (
            ("--create", "--topic", "t", "--partitions", "x"),
            "Cannot parse argument 'x' of option partitions",
        ),
        (("--bogus", "--list"), "bogus is not a recognized option"),
        (("--list", "--topic"), "Option topic requires an argument"),
    ],
)
def test_invalid_options_print_the_help(
    kafka: Command, arguments: tuple[str, ...], expected: str
) -> None:
    result = kafka("kafka-topics", *arguments)
    assert (result.status, result.out) == (1, "")
    assert expected in result.err.splitlines()[0]
    assert "--topic <topic>" in result.err


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--config", "retention.ms"), 'must be in the format "key=val"'),
        (("--replica-assignment", "1:1"), "may not contain duplicate entries: 1"),
        (("--replica-assignment", "1,2:3"), "Partition 1 has different replication factor"),
        (("--replication-factor", "0"), "The replication factor must be between 1 and 32767"),
        (("--partitions", "0"), "The partitions must be greater than 0"),
        (("--config", "no.such=1"), "Unknown topic config name: no.such"),
    ],
)
def test_an_invalid_topic_is_rejected(
    kafka: Command, arguments: tuple[str, ...], expected: str
) -> None:
    result = kafka("kafka-topics", "--create", "--topic", "t", *arguments)
    assert result.status == 1
    assert result.out.startswith("Error while executing topic command : ")
    assert expected in result.out


def test_reports_list_only_affected_partitions(kafka: Command, broker: Broker) -> None:
    broker.create_topic("plain")
    for report in "under-replicated", "unavailable", "under-min-isr":
        assert kafka("kafka-topics", "--describe", f"--{report}-partitions").out == ""
    at = kafka("kafka-topics", "--describe", "--at-min-isr-partitions", "--topic", "plain")
    assert [line.split("\t")[1] for line in at.lines] == ["Topic: plain"]
    kafka("kafka-topics", "--delete", "--topic", "plain")
