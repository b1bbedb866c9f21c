"""kafka-verifiable-producer and -consumer: every event as a line of JSON."""

import json
from typing import Any

from tests.cli.kafka.conftest import Command, CommandResult

from barnabas.testing import Broker


def events(result: CommandResult) -> list[dict[str, Any]]:
    return [json.loads(line) for line in result.lines]


def test_sent_and_consumed_records_are_printed_as_events(kafka: Command, broker: Broker) -> None:
    sent = events(
        kafka(
            "kafka-verifiable-producer",
            *("--topic", "verified", "--max-messages", 4, "--value-prefix", 7),
            *("--repeating-keys", 2, "--message-create-time", 1000),
        )
    )
    names = [event["name"] for event in sent]
    acknowledged = ["producer_send_success"] * 4
    assert names == ["startup_complete", *acknowledged, "shutdown_complete", "tool_data"]
    assert [(event["key"], event["value"], event["offset"]) for event in sent[1:5]] == [
        ("0", "7.0", 0),
        ("1", "7.1", 1),
        ("0", "7.2", 2),
        ("1", "7.3", 3),
    ]
    assert (sent[-1]["sent"], sent[-1]["acked"]) == (4, 4)

    consumed = events(
        kafka(
            "kafka-verifiable-consumer",
            *("--topic", "verified", "--group-id", "checkers", "--max-messages", 4, "--verbose"),
        )
    )
    expected = {event["name"]: event for event in consumed}
    assert expected["partitions_assigned"]["partitions"] == [{"topic": "verified", "partition": 0}]
    assert expected["records_consumed"]["count"] == 4
    assert expected["record_data"]["value"] == "7.3"
    assert expected["offsets_committed"]["success"] is True
    assert expected["offsets_committed"]["offsets"][0]["offset"] == 4
    assert [event["name"] for event in consumed][-3:] == [
        "partitions_revoked",
        "shutdown_complete",
        "shutdown_requested",
    ]


def test_without_acks_the_offset_is_minus_one(kafka: Command) -> None:
    options = ("--topic", "unheard", "--max-messages", 1, "--acks", 0)
    assert events(kafka("kafka-verifiable-producer", *options))[1]["offset"] == -1


def test_the_consumer_group_protocol_is_supported(kafka: Command, broker: Broker) -> None:
    kafka("kafka-verifiable-producer", "--topic", "modern", "--max-messages", 2)
    options = ("--topic", "modern", "--group-id", "modern", "--group-protocol", "consumer")
    consumed = events(kafka("kafka-verifiable-consumer", *options, "--max-messages", 2))
    assert sum(event.get("count", 0) for event in consumed) == 2


def test_missing_required_options_are_reported(kafka: Command) -> None:
    for name in "kafka-verifiable-producer", "kafka-verifiable-consumer":
        result = kafka(name)
        assert (result.status, "--topic" in result.err.splitlines()[-1]) == (1, True)
    assert kafka("kafka-verifiable-producer", "--help").status == 1
