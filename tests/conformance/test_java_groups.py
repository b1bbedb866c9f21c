"""Kafka's tools for groups and offsets on Barnabas, and on Kafka, which validates the tests.

A JVM takes a second or two to start, so a test runs few tools and checks several things of each.
"""

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.conformance.brokers import Broker
from tests.conformance.clients.client import SentRecord
from tests.conformance.clients.confluent_groups import ConfluentGroups
from tests.conformance.clients.group_client import (
    Committed,
    ConsumerOptions,
    GroupClient,
    GroupMembers,
    PartitionKey,
    Protocol,
)
from tests.conformance.tools import rows, tool

pytestmark = pytest.mark.peer


@pytest.fixture(scope="module")
def client(target: Broker) -> Iterator[ConfluentGroups]:
    """The client that creates the groups."""
    made = ConfluentGroups(target.bootstrap)
    yield made
    made.close()


@contextmanager
def stable_group(client: GroupClient, topic: str, options: ConsumerOptions) -> Iterator[str]:
    """A stable group of one member that has read ten records of each of two partitions."""
    client.create_topic(topic, 2)
    client.produce(topic, [SentRecord(b"%d" % n, partition=n % 2) for n in range(20)])
    group_members = GroupMembers([client.join(topic, [topic], options)])
    group_members.consume_all({b"%d" % n for n in range(20)})
    group_members.commit({PartitionKey(topic, 0), PartitionKey(topic, 1)}, 10)
    client.produce(topic, [SentRecord(b"not read", partition=1)] * 3)
    with polled_in_background(group_members):
        yield client.describe_group(topic).members[0].member_id
    group_members.leave()


@contextmanager
def polled_in_background(group_members: GroupMembers) -> Iterator[None]:
    """Polls the members in a thread without committing."""
    ending = threading.Event()
    thread = threading.Thread(
        target=lambda: group_members.poll_until(ending.is_set, "the tools have run")
    )
    thread.start()
    try:
        yield
    finally:
        ending.set()
        thread.join()


def create_empty_group(client: GroupClient, topic: str, *, offset: int) -> None:
    """An empty group that has committed an offset in each of two partitions of ten records."""
    client.create_topic(topic, 2)
    client.produce(topic, [SentRecord(b"%d" % n, partition=n % 2) for n in range(20)])
    topic_partitions = [PartitionKey(topic, 0), PartitionKey(topic, 1)]
    member = client.assigned_consumer(topic, topic_partitions)
    member.commit(dict.fromkeys(topic_partitions, Committed(offset)))
    member.leave()


@pytest.mark.parametrize("protocol", [Protocol.RANGE, Protocol.CONSUMER])
def test_consumer_groups_lists_and_describes(
    target: Broker, client: ConfluentGroups, topic: str, protocol: Protocol
) -> None:
    kind = "Consumer" if protocol is Protocol.CONSUMER else "Classic"
    options = ConsumerOptions(protocol, instance_id="static")
    with stable_group(client, topic, options) as member:
        assert [topic, "Stable"] in rows(tool(target, "consumer-groups", "--list", "--state"))
        assert [topic, kind] in rows(tool(target, "consumer-groups", "--list", "--type", kind))
        describe = ("consumer-groups", "--describe", "--group", topic)
        assert rows(tool(target, *describe, "--offsets", "--verbose")) == [
            [topic, topic, "0", "0", "10", "10", "0", member, "/127.0.0.1", "rdkafka"],
            [topic, topic, "1", "0", "10", "13", "3", member, "/127.0.0.1", "rdkafka"],
        ]
        (row,) = rows(tool(target, *describe, "--members", "--verbose"))
        assert row[:6] == [topic, member, "static", "/127.0.0.1", "rdkafka", "2"]
        assert row[7] == f"{topic}:0,1"
        assert row[9] == (row[7] if kind == "Consumer" else "-")
        (row,) = rows(tool(target, *describe, "--state", "--verbose"))
        assignor = "uniform" if kind == "Consumer" else "range"
        assert row[:5] == [topic, target.bootstrap, "(1)", assignor, "Stable"]
        assert row[7] == "1"
        assert all(epoch.isdigit() if kind == "Consumer" else epoch == "-" for epoch in row[5:7])


def test_consumer_groups_rejects_changes_of_groups_with_members(
    target: Broker, client: ConfluentGroups, topic: str
) -> None:
    with stable_group(client, topic, ConsumerOptions(Protocol.RANGE)):
        named = ("--group", topic)
        reset = tool(target, "consumer-groups", "--reset-offsets", *named, "--all-topics",
                     "--to-earliest", "--execute")  # fmt: skip
        assert f"group '{topic}' is inactive, but the current state is Stable" in reset
        deleted = tool(target, "consumer-groups", "--delete", *named)
        assert "GroupNotEmptyException" in deleted
        offsets = tool(target, "consumer-groups", "--delete-offsets", *named, "--topic", topic)
        assert offsets.count("GroupSubscribedToTopicException") == 2
        assert set(client.group_offsets(topic).values()) == {Committed(10)}


def test_consumer_groups_resets_offsets(
    target: Broker, client: ConfluentGroups, topic: str, tmp_path: Path
) -> None:
    create_empty_group(client, topic, offset=6)

    def reset(*how: str) -> list[list[str]]:
        named = ("--group", topic, "--topic", topic)
        printed = tool(target, "consumer-groups", "--reset-offsets", *named, *how)
        return sorted(row for row in rows(printed) if row[0] == topic)  # without warnings

    def expected(offset: int) -> list[list[str]]:
        return [[topic, topic, str(partition), str(offset)] for partition in range(2)]

    assert reset("--to-earliest", "--dry-run") == expected(0)
    assert set(client.group_offsets(topic).values()) == {Committed(6)}
    for how, offset in (
        (("--shift-by", "-2"), 4),
        (("--to-offset", "7"), 7),
        (("--to-offset", "99"), 10),
        (("--by-duration", "P1D"), 0),
        (("--to-datetime", "2099-01-01T00:00:00.000"), 10),
        (("--to-earliest",), 0),
        (("--to-latest",), 10),
    ):
        assert reset(*how, "--execute") == expected(offset)
        assert set(client.group_offsets(topic).values()) == {Committed(offset)}
    plan = tmp_path / "plan.csv"
    plan.write_text(f"{topic},0,3\n{topic},1,5\n")
    from_file = ("--group", topic, "--from-file", str(plan), "--execute")
    tool(target, "consumer-groups", "--reset-offsets", *from_file)
    assert client.group_offsets(topic) == {
        PartitionKey(topic, 0): (3, ""),
        PartitionKey(topic, 1): (5, ""),
    }
    export = ("--group", topic, "--all-topics", "--to-current", "--export", "--dry-run")
    exported = tool(target, "consumer-groups", "--reset-offsets", *export)
    assert sorted(exported.split()) == [f'"{topic}",0,3', f'"{topic}",1,5']


def test_consumer_groups_deletes_offsets_and_groups(
    target: Broker, client: ConfluentGroups, topic: str
) -> None:
    create_empty_group(client, topic, offset=6)
    named = ("--group", topic)
    one = tool(target, "consumer-groups", "--delete-offsets", *named, "--topic", f"{topic}:0")
    assert [topic, "0", "Successful"] in rows(one)
    assert client.group_offsets(topic) == {PartitionKey(topic, 1): Committed(6)}
    deleted = tool(target, "consumer-groups", "--delete", *named)
    assert f"Deletion of requested consumer groups ('{topic}') was successful." in deleted
    assert topic not in client.groups()
    assert "GroupIdNotFoundException" in tool(target, "consumer-groups", "--delete", *named)


def test_groups_lists_every_kind(target: Broker, client: ConfluentGroups, topic: str) -> None:
    create_empty_group(client, topic, offset=1)
    with stable_group(client, f"{topic}-new", ConsumerOptions(Protocol.CONSUMER)):
        listed = rows(tool(target, "groups", "--list"))
        assert [f"{topic}-new", "Consumer", "consumer"] in listed
        assert [topic, "Classic"] in listed  # without a protocol type: it never had members


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_console_consumers_continue_at_the_committed_offset(
    target: Broker, client: ConfluentGroups, topic: str, protocol: str
) -> None:
    client.produce(topic, [SentRecord(b"%d" % n) for n in range(10)])

    def consume(count: int) -> list[str]:
        return tool(
            target,
            "console-consumer",
            *("--topic", topic, "--group", topic, "--from-beginning"),
            *("--max-messages", str(count), "--command-property", f"group.protocol={protocol}"),
        ).split()

    assert consume(4) == ["0", "1", "2", "3"]
    assert consume(6) == ["4", "5", "6", "7", "8", "9"]
    assert client.group_offsets(topic) == {PartitionKey(topic, 0): Committed(10)}


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_verifiable_consumer(
    target: Broker, client: ConfluentGroups, topic: str, protocol: str
) -> None:
    client.create_topic(topic, 2)
    client.produce(topic, [SentRecord(b"%d" % n, partition=n % 2) for n in range(200)])
    printed = tool(
        target,
        "verifiable-consumer",
        *("--topic", topic, "--group-id", topic, "--max-messages", "200"),
        *("--group-protocol", protocol),
    )
    events = [json.loads(line) for line in printed.splitlines() if line.startswith("{")]
    assigned = [event for event in events if event["name"] == "partitions_assigned"]
    assert sum(len(event["partitions"]) for event in assigned) == 2
    consumed = [event for event in events if event["name"] == "records_consumed"]
    assert sum(event["count"] for event in consumed) == 200
    committed = [event for event in events if event["name"] == "offsets_committed"]
    assert all(event["success"] for event in committed)
    assert client.group_offsets(topic) == dict.fromkeys(
        [PartitionKey(topic, 0), PartitionKey(topic, 1)], Committed(100)
    )


def test_consumer_perf_test(target: Broker, client: ConfluentGroups, topic: str) -> None:
    client.produce(topic, [SentRecord(bytes(100)) for _ in range(5_000)])
    printed = tool(
        target,
        "consumer-perf-test",
        *("--topic", topic, "--num-records", "5000", "--group", topic, "--hide-header"),
    )
    cells = printed.strip().splitlines()[-1].split(", ")
    assert cells[4] == "5000"
    assert client.group_offsets(topic) == {PartitionKey(topic, 0): Committed(5_000)}


def test_settings_of_a_group(target: Broker, topic: str) -> None:
    group = ("--entity-type", "groups", "--entity-name", topic)
    settings = "consumer.session.timeout.ms=50000,consumer.heartbeat.interval.ms=7000"
    assert f"Completed updating config for group {topic}." in tool(
        target, "configs", *group, "--alter", "--add-config", settings
    )
    described = tool(target, "configs", *group, "--describe")
    assert "consumer.session.timeout.ms=50000 sensitive=false" in described
    assert re.search(r"consumer.heartbeat.interval.ms=7000 .*DYNAMIC_GROUP_CONFIG", described)
    tool(target, "configs", *group, "--alter", "--delete-config", "consumer.session.timeout.ms")
    described = tool(target, "configs", *group, "--describe")
    assert "consumer.session.timeout.ms=50000" not in described
    assert "consumer.heartbeat.interval.ms=7000" in described
