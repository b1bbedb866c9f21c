"""Topics and their records as an administrator sees them."""

import time

import pytest
from tests.conformance.clients.client import (
    EARLIEST,
    LATEST,
    MAX_TIMESTAMP,
    Client,
    Code,
    DescribesLogDirs,
    ListsOffsets,
    Sent,
    refused_with,
)
from tests.wait import wait_until


class TopicScenarios:
    def test_a_created_topic_is_listed_and_described(self, client: Client, topic: str) -> None:
        (node,) = client.describe_cluster().brokers
        client.create_topic(topic, 3)
        assert topic in client.topics()
        partitions = client.describe_topic(topic)
        assert [each.index for each in partitions] == [0, 1, 2]
        for each in partitions:
            assert (each.leader, each.replicas, each.in_sync) == (node, [node], [node])

    def test_a_topic_is_created_once(self, client: Client, topic: str) -> None:
        client.create_topic(topic)
        with refused_with(Code.TOPIC_ALREADY_EXISTS):
            client.create_topic(topic)

    def test_validating_only_creates_nothing(self, client: Client, topic: str) -> None:
        client.ask_for_topic(topic, 1, 1, {}, validate_only=True)
        assert topic not in client.topics()

    @pytest.mark.parametrize(
        ("name", "partitions", "replication_factor", "configs", "code"),
        [
            ("with/slash", 1, 1, {}, Code.INVALID_TOPIC_EXCEPTION),
            ("x" * 250, 1, 1, {}, Code.INVALID_TOPIC_EXCEPTION),
            ("refused", 0, 1, {}, Code.INVALID_PARTITIONS),
            ("refused", 1, 2, {}, Code.INVALID_REPLICATION_FACTOR),
            ("refused", 1, 1, {"retention.ms": "soon"}, Code.INVALID_CONFIG),
            ("refused", 1, 1, {"cleanup.policy": "burn"}, Code.INVALID_CONFIG),
            ("refused", 1, 1, {"no.such.setting": "1"}, Code.INVALID_CONFIG),
        ],
    )
    def test_what_cannot_be_created_is_refused(
        self,
        client: Client,
        name: str,
        partitions: int,
        replication_factor: int,
        configs: dict[str, str],
        code: Code,
    ) -> None:
        with refused_with(code):
            client.ask_for_topic(name, partitions, replication_factor, configs)
        assert name not in client.topics()

    def test_a_deleted_topic_is_gone_and_its_name_starts_anew(
        self, client: Client, topic: str
    ) -> None:
        client.create_topic(topic)
        client.produce(topic, [Sent(b"old")] * 5)
        client.delete_topic(topic)
        wait_until(lambda: topic not in client.topics(), "the topic is gone")
        client.create_topic(topic)
        assert client.ends(topic) == (0, 0)
        assert client.produce(topic, [Sent(b"new")]) == [0]
        assert client.fetch(topic, 0, 1)[0].value == b"new"

    def test_an_unknown_topic_is_refused(self, client: Client, topic: str) -> None:
        with refused_with(Code.UNKNOWN_TOPIC_OR_PARTITION):
            client.delete_topic(topic)
        with refused_with(Code.UNKNOWN_TOPIC_OR_PARTITION):
            client.create_partitions(topic, 2)
        assert topic not in client.topics()

    def test_partitions_are_added_and_never_taken_away(self, client: Client, topic: str) -> None:
        client.create_topic(topic, 2)
        client.produce(topic, [Sent(b"before")])
        client.create_partitions(topic, 5)
        wait_until(lambda: len(client.describe_topic(topic)) > 2, "the new partitions are known")
        assert [each.index for each in client.describe_topic(topic)] == [0, 1, 2, 3, 4]
        assert client.produce(topic, [Sent(b"after", partition=4)]) == [0]
        assert client.ends(topic, partition=0) == (0, 1)
        for total in 5, 1:
            with refused_with(Code.INVALID_PARTITIONS):
                client.create_partitions(topic, total)

    def test_deleting_records_moves_the_start(self, client: Client, topic: str) -> None:
        client.produce(topic, [Sent(b"%d" % number) for number in range(10)])
        assert client.delete_records(topic, 4) == 4
        assert client.ends(topic) == (4, 10)
        assert client.fetch(topic, EARLIEST, 1)[0].offset == 4
        with refused_with(Code.OFFSET_OUT_OF_RANGE):
            client.fetch(topic, 3, 1)
        with refused_with(Code.OFFSET_OUT_OF_RANGE):
            client.delete_records(topic, 11)
        assert client.delete_records(topic, 2) == 4
        assert client.delete_records(topic, -1) == 10
        assert client.ends(topic) == (10, 10)

    def test_the_cluster_is_described(self, client: Client) -> None:
        cluster = client.describe_cluster()
        assert list(cluster.brokers.values()) == [client.bootstrap]
        assert cluster.controller in cluster.brokers
        assert len(cluster.cluster_id) == 22


class DescribeScenarios:
    """For libraries that describe a topic without asking for it to be created."""

    def test_describing_an_unknown_topic_does_not_create_it(
        self, client: Client, topic: str
    ) -> None:
        with refused_with(Code.UNKNOWN_TOPIC_OR_PARTITION):
            client.describe_topic(topic)
        assert topic not in client.topics()


class ListOffsetsScenarios:
    def test_offsets_are_listed_by_time_and_place(self, client: ListsOffsets, topic: str) -> None:
        start_ms = int(time.time() * 1000) - 60_000
        for offset_ms in 0, 20, 10:
            client.produce(topic, [Sent(b"v", timestamp_ms=start_ms + offset_ms)])
        client.delete_records(topic, 1)
        assert client.list_offset(topic, EARLIEST) == 1
        assert client.list_offset(topic, LATEST) == 3
        assert client.list_offset(topic, MAX_TIMESTAMP) == 1
        assert client.list_offset(topic, start_ms + 15) == 1
        assert client.list_offset(topic, start_ms + 30) == -1


class LogDirScenarios:
    def test_log_directories_say_what_they_hold(self, client: DescribesLogDirs, topic: str) -> None:
        client.create_topic(topic, 2)
        client.produce(topic, [Sent(bytes(1000), partition=1)])
        (sizes,) = client.log_dirs(topic).values()
        assert sizes[0] == 0
        assert 1000 < sizes[1] < 1200
