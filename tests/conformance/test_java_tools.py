"""Kafka's command-line tools on Barnabas, and on Kafka, which validates the tests.

A JVM takes a second or two to start, so a test runs few tools and checks several things of each.
"""

import json
import re
import time
from pathlib import Path

import pytest
from tests.conformance.brokers import Broker, run_peer
from tests.conformance.clients.confluent import ConfluentClient
from tests.conformance.tools import tool

pytestmark = pytest.mark.peer


def create_topic(target: Broker, topic: str, configs: dict[str, str] | None = None) -> None:
    """Creates a topic without a JVM."""
    client = ConfluentClient(target.bootstrap)
    client.create_topic(topic, configs=configs)
    client.close()


def test_console_producer_and_consumer(target: Broker, topic: str) -> None:
    """Idempotent and compressed, with keys, headers and a null value."""
    tool(
        target,
        "console-producer",
        *("--topic", topic, "--compression-codec", "zstd"),
        *("--reader-property", "parse.key=true", "--reader-property", "key.separator=="),
        *("--reader-property", "parse.headers=true", "--reader-property", "null.marker=NIL"),
        stdin="a:1,b:2\tk1=first\nc:3\tk2=NIL\nd:4\tk1=third\n",
    )
    printed = tool(
        target,
        "console-consumer",
        *("--topic", topic, "--partition", "0", "--offset", "earliest", "--max-messages", "3"),
        *("--formatter-property", "print.key=true", "--formatter-property", "print.headers=true"),
        *("--formatter-property", "print.offset=true"),
    )
    assert printed.splitlines() == [
        "Offset:0\ta:1,b:2\tk1\tfirst",
        "Offset:1\tc:3\tk2\tnull",
        "Offset:2\td:4\tk1\tthird",
    ]


@pytest.mark.parametrize("acks", ["0", "all"])
def test_producer_perf_test(target: Broker, topic: str, acks: str) -> None:
    printed = tool(
        target,
        "producer-perf-test",
        *("--topic", topic, "--num-records", "20000", "--record-size", "100"),
        *("--throughput", "-1", "--command-property", f"acks={acks}"),
    )
    assert printed.splitlines()[-1].startswith("20000 records sent")


def test_verifiable_producer(target: Broker, topic: str) -> None:
    printed = tool(
        target,
        "verifiable-producer",
        *("--topic", topic, "--max-messages", "500", "--acks", "-1", "--repeating-keys", "7"),
    )
    events = [json.loads(line) for line in printed.splitlines()]
    sent = [event for event in events if event["name"] == "producer_send_success"]
    assert sorted(event["offset"] for event in sent) == list(range(500))
    assert events[-1]["name"] == "tool_data"
    assert events[-1]["acked"] == 500


def test_topics(target: Broker, topic: str) -> None:
    create = ("--create", "--topic", topic, "--partitions", "2", "--config", "retention.ms=60000")
    assert f"Created topic {topic}" in tool(target, "topics", *create)
    tool(target, "topics", "--alter", "--topic", topic, "--partitions", "3")
    described = tool(target, "topics", "--describe", "--topic", topic)
    summary, *partitions = described.strip().splitlines()
    assert re.search(r"TopicId: [\w-]{22}\tPartitionCount: 3\tReplicationFactor: 1", summary)
    assert "retention.ms=60000" in summary
    pattern = r"Partition: (\d)\tLeader: 1\tReplicas: 1\tIsr: 1"
    assert [re.search(pattern, line)[1] for line in partitions] == ["0", "1", "2"]
    assert topic in tool(target, "topics", "--list").splitlines()
    tool(target, "topics", "--delete", "--topic", topic)
    assert topic not in tool(target, "topics", "--list").splitlines()


def test_configs(target: Broker, topic: str) -> None:
    create_topic(target, topic, {"segment.ms": "60000"})
    entity = ("--entity-type", "topics", "--entity-name", topic)
    change = ("--add-config", "cleanup.policy=[compact,delete]", "--delete-config", "segment.ms")
    tool(target, "configs", *entity, "--alter", *change)
    described = tool(target, "configs", *entity, "--describe")
    assert "cleanup.policy=compact,delete sensitive=false" in described
    assert "segment.ms" not in described
    broker = ("--entity-type", "brokers", "--entity-name", "1")
    tool(target, "configs", *broker, "--alter", "--add-config", "log.cleaner.threads=2")
    described = tool(target, "configs", *broker, "--describe", "--all")
    assert re.search(r"log.cleaner.threads=2 sensitive=false .*DYNAMIC_BROKER_CONFIG", described)
    assert re.search(r"node.id=1 sensitive=false .*STATIC_BROKER_CONFIG", described)
    tool(target, "configs", *broker, "--alter", "--delete-config", "log.cleaner.threads")


def test_get_offsets_by_time_after_deleting_records(
    target: Broker, topic: str, tmp_path: Path
) -> None:
    before_ms = int(time.time() * 1000) - 1
    lines = "".join(f"{number}\n" for number in range(10))
    tool(target, "console-producer", "--topic", topic, stdin=lines)
    deletion = tmp_path / "delete.json"
    partition = {"topic": topic, "partition": 0, "offset": 4}
    deletion.write_text(json.dumps({"version": 1, "partitions": [partition]}))
    deleted = tool(target, "delete-records", "--offset-json-file", str(deletion))
    assert f"partition: {topic}-0\tlow_watermark: 4" in deleted
    for at, offset in ("-1", 10), ("-2", 4), (str(before_ms), 4):
        offsets = tool(target, "get-offsets", "--topic", topic, "--time", at)
        assert offsets.strip() == f"{topic}:0:{offset}"


def test_log_dirs_and_leader_election(target: Broker, topic: str) -> None:
    create_topic(target, topic)
    described = tool(target, "log-dirs", "--describe", "--topic-list", topic)
    response = json.loads(described.strip().splitlines()[-1])
    (broker,) = response["brokers"]
    (directory,) = broker["logDirs"]
    assert directory["error"] is None
    assert directory["logDir"] == str(target.data)
    assert [entry["partition"] for entry in directory["partitions"]] == [f"{topic}-0"]
    elected = tool(
        target, "leader-election", "--election-type", "preferred", "--all-topic-partitions"
    )
    assert "Error" not in elected


def test_the_cluster_is_described(target: Broker) -> None:
    output = run_peer("tool", "cluster", "cluster-id", "--bootstrap-server", target.bootstrap)
    assert re.search(r"Cluster ID: [\w-]{22}", output)
    versions = tool(target, "broker-api-versions")
    assert versions.startswith(target.bootstrap)
    assert re.search(r"Produce\(0\): \d+ to \d+ \[usable: \d+\]", versions)
    features = tool(target, "features", "describe")
    assert re.search(r"metadata.version\s.*FinalizedVersionLevel: 4\.3", features)
    status = tool(target, "metadata-quorum", "describe", "--status")
    assert re.search(r"LeaderId:\s+1\n", status)
    assert re.search(r"CurrentVoters:\s+\[\{\"id\": 1,", status)
    replication = tool(target, "metadata-quorum", "describe", "--replication")
    assert re.search(r"^1\s+[\w-]{22}\s+\d+\s+0\s+\d+\s+\d+\s+Leader", replication, re.M)


def test_errors_are_printed_in_kafkas_words(target: Broker) -> None:
    """These commands print the broker's message and end with 0 all the same."""
    describe = tool(target, "consumer-groups", "--describe", "--group", "missing")
    assert "GroupIdNotFoundException: Group missing not found." in describe
    delete = tool(target, "consumer-groups", "--delete", "--group", "missing")
    reason = "GroupIdNotFoundException: The group id does not exist."
    assert (
        f"Group 'missing' could not be deleted due to: org.apache.kafka.common.errors.{reason}"
        in (delete)
    )
