"""Kafka's commands for offsets, records, leaders, reassignments, features and the cluster."""

import json
import re
from pathlib import Path

import pytest
from confluent_kafka import Producer
from tests.cli.kafka.conftest import Command, produce

from barnabas.testing import Broker


@pytest.fixture(scope="module", autouse=True)
def records(broker: Broker) -> None:
    broker.create_topic("orders", 2)
    produce(broker, "orders", 10, partition=0)


def written(tmp_path: Path, content: object) -> Path:
    file = tmp_path / "arguments.json"
    file.write_text(json.dumps(content))
    return file


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--topic", "orders"), ["orders:0:10", "orders:1:0"]),
        (("--topic", "orders", "--time", "-2"), ["orders:0:0", "orders:1:0"]),
        (("--topic", "ord.*", "--partitions", "1"), ["orders:1:0"]),
        (("--topic-partitions", "orders:0-1", "--time", "latest"), ["orders:0:10"]),
        (("--topic", "orders", "--time", "99999999999999"), []),
    ],
)
def test_get_offsets_prints_offsets_of_matching_partitions(
    kafka: Command, arguments: tuple[str, ...], expected: list[str]
) -> None:
    assert kafka("kafka-get-offsets", *arguments).lines == expected


def test_get_offsets_without_a_match_is_an_error(kafka: Command) -> None:
    result = kafka("kafka-get-offsets", "--topic", "nope")
    assert (result.status, result.err) == (
        1,
        "Error occurred: Could not match any topic-partitions with the specified filters\n",
    )


def test_records_are_deleted(kafka: Command, broker: Broker, tmp_path: Path) -> None:
    broker.create_topic("short")
    produce(broker, "short", 5)
    content = {"version": 1, "partitions": [{"topic": "short", "partition": 0, "offset": 3}]}
    result = kafka("kafka-delete-records", "--offset-json-file", written(tmp_path, content))
    assert result.lines == [
        "Executing records delete operation",
        "Records delete operation completed:",
        "partition: short-0\tlow_watermark: 3",
    ]
    content["partitions"][0]["offset"] = 99
    result = kafka("kafka-delete-records", "--offset-json-file", written(tmp_path, content))
    assert result.lines[2].startswith(
        "partition: short-0\terror: org.apache.kafka.common.errors.OffsetOutOfRangeException: "
    )
    content["partitions"] *= 2
    twice = kafka("kafka-delete-records", "--offset-json-file", written(tmp_path, content))
    assert (twice.status, twice.err) == (
        1,
        "Offset json file contains duplicate topic partitions: short-0\n",
    )


def test_log_dirs_are_described_as_json(kafka: Command) -> None:
    result = kafka("kafka-log-dirs", "--describe", "--topic-list", "orders")
    assert result.lines[:2] == [
        "Querying brokers for log directories information",
        "Received log directory information from brokers 1",
    ]
    (directory,) = json.loads(result.lines[2])["brokers"][0]["logDirs"]
    assert [entry["partition"] for entry in directory["partitions"]] == ["orders-0", "orders-1"]
    assert directory["error"] is None
    away = kafka("kafka-log-dirs", "--describe", "--broker-list", "1,9")
    assert (away.status, "--broker-list: 9." in away.err) == (1, True)


def test_leaders_are_elected(kafka: Command, tmp_path: Path) -> None:
    every = kafka("kafka-leader-election", "--election-type", "preferred", "--all-topic-partitions")
    assert every.status == 0
    one = kafka("kafka-leader-election", "--election-type", "PREFERRED", "--topic", "orders",
                "--partition", 0)  # fmt: skip
    assert one.out == "Valid replica already elected for partitions orders-0\n"
    file = written(tmp_path, {"partitions": [{"topic": "orders", "partition": 9}]})
    none = kafka("kafka-leader-election", "--election-type", "unclean", "--path-to-json-file", file)
    assert none.status == 1
    assert none.out.startswith(
        "Error completing leader election (UNCLEAN) for partition: orders-9: "
    )


def test_partitions_are_reassigned(kafka: Command, tmp_path: Path) -> None:
    command = "kafka-reassign-partitions"
    topics = written(tmp_path, {"version": 1, "topics": [{"topic": "orders"}]})
    proposed = kafka(
        command, "--generate", "--topics-to-move-json-file", topics, "--broker-list", 1
    )
    assert proposed.lines[0] == "Current partition replica assignment"
    assert proposed.lines[3] == "Proposed partition reassignment configuration"
    plan = json.loads(proposed.lines[4])
    assert [entry["replicas"] for entry in plan["partitions"]] == [[1], [1]]
    file = written(tmp_path, plan)
    started = kafka(command, "--execute", "--reassignment-json-file", file, "--throttle", 1_000_000)
    assert started.lines[-2:] == [
        "The inter-broker throttle limit was set to 1000000 B/s",
        "Successfully started partition reassignments for orders-0,orders-1",
    ]
    assert "throttled" in kafka("kafka-configs", "--describe", "--broker", 1).out
    verified = kafka(command, "--verify", "--reassignment-json-file", file)
    assert verified.lines == [
        "Status of partition reassignment:",
        "Reassignment of partition orders-0 is completed.",
        "Reassignment of partition orders-1 is completed.",
        "",
        "Clearing broker-level throttles on broker 1",
        "Clearing topic-level throttles on topic orders",
    ]
    assert "throttled" not in kafka("kafka-configs", "--describe", "--broker", 1).out
    assert kafka(command, "--list").out == "No partition reassignments found.\n"
    plan["partitions"][0]["replicas"] = [9]
    unknown = kafka(command, "--execute", "--reassignment-json-file", written(tmp_path, plan))
    assert unknown.status == 1
    plan["partitions"][0].pop("log_dirs")
    unknown = kafka(command, "--execute", "--reassignment-json-file", written(tmp_path, plan))
    assert (unknown.status, unknown.out) == (1, "Error: Unknown broker id 9\n")


def test_transactions_are_listed_described_and_terminated(kafka: Command, broker: Broker) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": "tx"})
    producer.init_transactions()
    producer.begin_transaction()
    producer.produce("orders", "x", partition=1)
    producer.flush()
    listed = kafka("kafka-transactions", "list").lines
    assert listed[0].split() == ["TransactionalId", "Coordinator", "ProducerId", "TransactionState"]
    assert re.fullmatch(r"tx\s+1\s+\d+\s+Ongoing\s+", listed[1])
    described = kafka("kafka-transactions", "describe", "--transactional-id", "tx").lines
    assert described[1].split()[-1] == "orders-1"
    producers = kafka("kafka-transactions", "describe-producers", "--topic", "orders",
                      "--partition", 1).lines  # fmt: skip
    assert producers[1].split()[-1] == "0"
    assert len(kafka("kafka-transactions", "find-hanging", "--topic", "orders").lines) == 1
    ended = kafka("kafka-transactions", "forceTerminateTransaction", "--transactionalId", "tx")
    assert ended.status == 0
    assert "Ongoing" not in kafka("kafka-transactions", "list").out
    unknown = kafka("kafka-transactions", "describe", "--transactional-id", "nope")
    assert (unknown.status, "of transactional-id `nope`" in unknown.err) == (1, True)


def test_features_are_described_and_changed(kafka: Command, run: Command) -> None:
    described = kafka("kafka-features", "describe").lines
    assert len(described) == 7
    assert re.fullmatch(
        r"Feature: metadata.version {26}SupportedMinVersion: 3.3-IV3 {10}SupportedMaxVersion: "
        r"4.3-IV0 {10}FinalizedVersionLevel: 4.3-IV0 {10}Epoch: \d+",
        described[3],
    )
    down = kafka("kafka-features", "downgrade", "--feature", "share.version=0", "--dry-run")
    assert down.out == "share.version can be downgraded to 0.\n"
    up = kafka("kafka-features", "upgrade", "--feature", "group.version=9")
    assert (up.status, up.out.startswith("Could not upgrade group.version to 9. ")) == (1, True)
    mapped = run("kafka-features", "version-mapping", "--release-version", "3.7").lines
    assert mapped[:2] == ["metadata.version=19 (3.7)", "kraft.version=0"]


def test_the_cluster_and_its_quorum_are_described(
    kafka: Command, run: Command, broker: Broker
) -> None:
    result = run("kafka-cluster", "cluster-id", "-b", broker.bootstrap_servers)
    assert re.fullmatch(r"Cluster ID: [\w-]{22}\n", result.out)
    listed = run("kafka-cluster", "list-endpoints", "-b", broker.bootstrap_servers).lines
    assert listed[1].split()[0] == "1"
    assert listed[1].split()[-2:] == ["unfenced", "broker"]
    status = kafka("kafka-metadata-quorum", "describe", "--status").out
    assert re.search(r"^LeaderId:               1$", status, re.M)
    assert re.search(r'^CurrentVoters:          \[\{"id": 1, "directoryId": "', status, re.M)
    replication = kafka("kafka-metadata-quorum", "describe", "--replication").lines
    assert replication[0].split()[:3] == ["NodeId", "DirectoryId", "LogEndOffset"]
    assert replication[1].split()[-1] == "Leader"
    versions = kafka("kafka-broker-api-versions").out
    assert re.match(
        r"127.0.0.1:\d+ \(id: 1 rack: null isFenced: false\) -> \(\n\tProduce", versions
    )
    assert kafka("kafka-groups", "--list").lines[0].split() == ["GROUP", "TYPE", "PROTOCOL"]


def test_a_dry_run_removes_no_controller(kafka: Command) -> None:
    controller = ("--controller-id", 1, "--controller-directory-id", "AAAAAAAAAAAAAAAAAAAAAQ")
    result = kafka("kafka-metadata-quorum", "remove-controller", *controller, "--dry-run")
    assert result.out.startswith("DRY RUN of removing  KRaft controller 1 with directory id AAAA")
    assert kafka("kafka-metadata-quorum", "remove-controller", *controller).status == 1
