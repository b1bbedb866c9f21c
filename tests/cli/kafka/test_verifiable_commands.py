"""kafka-verifiable-producer and -consumer: every event as a line of JSON."""

import json
from typing import Any

from tests.cli.kafka.conftest import Command, Said

from barnabas.testing import Broker


def events(said: Said) -> list[dict[str, Any]]:
    return [json.loads(line) for line in said.lines]


def test_what_is_sent_is_told_and_so_is_what_comes(kafka: Command, broker: Broker) -> None:
    sent = events(
        kafka(
            "kafka-verifiable-producer",
            *("--topic", "verified", "--max-messages", 4, "--value-prefix", 7),
            *("--repeating-keys", 2, "--message-create-time", 1000),
        )
    )
    names = [event["name"] for event in sent]
    kept = ["producer_send_success"] * 4
    assert names == ["startup_complete", *kept, "shutdown_complete", "tool_data"]
    assert [(event["key"], event["value"], event["offset"]) for event in sent[1:5]] == [
        ("0", "7.0", 0),
        ("1", "7.1", 1),
        ("0", "7.2", 2),
        ("1", "7.3", 3),
    ]
    assert (sent[-1]["sent"], sent[-1]["acked"]) == (4, 4)

    came = events(
        kafka(
            "kafka-verifiable-consumer",
            *("--topic", "verified", "--group-id", "checkers", "--max-messages", 4, "--verbose"),
        )
    )
    told = {event["name"]: event for event in came}
    assert told["partitions_assigned"]["partitions"] == [{"topic": "verified", "partition": 0}]
    assert told["records_consumed"]["count"] == 4
    assert told["record_data"]["value"] == "7.3"
    assert told["offsets_committed"]["success"] is True
    assert told["offsets_committed"]["offsets"][0]["offset"] == 4
    assert [event["name"] for event in came][-3:] == [
        "partitions_revoked",
        "shutdown_complete",
        "shutdown_requested",
    ]


def test_without_acks_no_offset_is_known(kafka: Command) -> None:
    options = ("--topic", "unheard", "--max-messages", 1, "--acks", 0)
    assert events(kafka("kafka-verifiable-producer", *options))[1]["offset"] == -1


def test_the_new_protocol(kafka: Command, broker: Broker) -> None:
    kafka("kafka-verifiable-producer", "--topic", "modern", "--max-messages", 2)
    options = ("--topic", "modern", "--group-id", "modern", "--group-protocol", "consumer")
    came = events(kafka("kafka-verifiable-consumer", *options, "--max-messages", 2))
    assert sum(event.get("count", 0) for event in came) == 2


def test_what_is_required_is_said(kafka: Command) -> None:
    for name in "kafka-verifiable-producer", "kafka-verifiable-consumer":
        said = kafka(name)
        assert (said.status, "--topic" in said.err.splitlines()[-1]) == (1, True)
    assert kafka("kafka-verifiable-producer", "--help").status == 1
