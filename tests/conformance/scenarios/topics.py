"""Administration of topics and their records."""

import time

import pytest
from tests.conformance.clients.client import (
    EARLIEST,
    LATEST,
    MAX_TIMESTAMP,
    Client,
    ErrorCode,
    ListOffsetsClient,
    LogDirsClient,
    SentRecord,
    raises_error,
)
from tests.wait import wait_until


class TopicScenarios:
    def test_a_created_topic_is_listed_and_described(self, client: Client, topic: str) -> None:
        (node,) = client.describe_cluster().brokers
        client.create_topic(topic, 3)
        assert topic in client.topics()
        partitions = client.describe_topic(topic)
        assert [partition.index for partition in partitions] == [0, 1, 2]
        for partition in partitions:
            assert (partition.leader, partition.replicas, partition.in_sync) == (
                node,
                [node],
                [node],
            )

    def test_a_topic_is_created_once(self, client: Client, topic: str) -> None:
        client.create_topic(topic)
        with raises_error(ErrorCode.TOPIC_ALREADY_EXISTS):
            client.create_topic(topic)

    def test_validate_only_creates_nothing(self, client: Client, topic: str) -> None:
        client.send_create_topics(topic, 1, 1, {}, validate_only=True)
        assert topic not in client.topics()

    @pytest.mark.parametrize(
        ("name", "partitions", "replication_factor", "configs", "code"),
        [
            ("with/slash", 1, 1, {}, ErrorCode.INVALID_TOPIC_EXCEPTION),
            ("x" * 250, 1, 1, {}, ErrorCode.INVALID_TOPIC_EXCEPTION),
            ("invalid", 0, 1, {}, ErrorCode.INVALID_PARTITIONS),
            ("invalid", 1, 2, {}, ErrorCode.INVALID_REPLICATION_FACTOR),
            ("invalid", 1, 1, {"retention.ms": "soon"}, ErrorCode.INVALID_CONFIG),
            ("invalid", 1, 1, {"cleanup.policy": "burn"}, ErrorCode.INVALID_CONFIG),
            ("invalid", 1, 1, {"no.such.setting": "1"}, ErrorCode.INVALID_CONFIG),
        ],
    )
    def test_invalid_topics_are_rejected(
        self,
        client: Client,
        name: str,
        partitions: int,
        replication_factor: int,
        configs: dict[str, str],
        code: ErrorCode,
    ) -> None:
        with raises_error(code):
            client.send_create_topics(name, partitions, replication_factor, configs)
        assert name not in client.topics()

    def test_a_deleted_topic_can_be_created_again(self, client: Client, topic: str) -> None:
        client.create_topic(topic)
        client.produce(topic, [SentRecord(b"old")] * 5)
        client.delete_topic(topic)
        wait_until(lambda: topic not in client.topics(), "the topic is gone")
        client.create_topic(topic)
        assert client.watermarks(topic) == (0, 0)
        assert client.produce(topic, [SentRecord(b"new")]) == [0]
        assert client.fetch(topic, 0, 1)[0].value == b"new"

    def test_requests_for_an_unknown_topic_are_rejected(self, client: Client, topic: str) -> None:
        with raises_error(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION):
            client.delete_topic(topic)
        with raises_error(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION):
            client.create_partitions(topic, 2)
        assert topic not in client.topics()

    def test_partitions_are_added_and_never_removed(self, client: Client, topic: str) -> None:
        client.create_topic(topic, 2)
        client.produce(topic, [SentRecord(b"before")])
        client.create_partitions(topic, 5)
        wait_until(lambda: len(client.describe_topic(topic)) > 2, "the new partitions are known")
        assert [partition.index for partition in client.describe_topic(topic)] == [0, 1, 2, 3, 4]
        assert client.produce(topic, [SentRecord(b"after", partition=4)]) == [0]
        assert client.watermarks(topic, partition=0) == (0, 1)
        for total in 5, 1:
            with raises_error(ErrorCode.INVALID_PARTITIONS):
                client.create_partitions(topic, total)

    def test_deleting_records_moves_the_log_start_offset(self, client: Client, topic: str) -> None:
        client.produce(topic, [SentRecord(b"%d" % number) for number in range(10)])
        assert client.delete_records(topic, 4) == 4
        assert client.watermarks(topic) == (4, 10)
        assert client.fetch(topic, EARLIEST, 1)[0].offset == 4
        with raises_error(ErrorCode.OFFSET_OUT_OF_RANGE):
            client.fetch(topic, 3, 1)
        with raises_error(ErrorCode.OFFSET_OUT_OF_RANGE):
            client.delete_records(topic, 11)
        assert client.delete_records(topic, 2) == 4
        assert client.delete_records(topic, -1) == 10
        assert client.watermarks(topic) == (10, 10)

    def test_the_cluster_is_described(self, client: Client) -> None:
        cluster = client.describe_cluster()
        assert list(cluster.brokers.values()) == [client.bootstrap]
        assert cluster.controller in cluster.brokers
        assert len(cluster.cluster_id) == 22


class DescribeScenarios:
    """For libraries that describe a topic without creating it."""

    def test_describing_an_unknown_topic_does_not_create_it(
        self, client: Client, topic: str
    ) -> None:
        with raises_error(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION):
            client.describe_topic(topic)
        assert topic not in client.topics()


class ListOffsetsScenarios:
    def test_offsets_are_listed_by_time_and_position(
        self, client: ListOffsetsClient, topic: str
    ) -> None:
        start_ms = int(time.time() * 1000) - 60_000
        for offset_ms in 0, 20, 10:
            client.produce(topic, [SentRecord(b"v", timestamp_ms=start_ms + offset_ms)])
        client.delete_records(topic, 1)
        assert client.list_offset(topic, EARLIEST) == 1
        assert client.list_offset(topic, LATEST) == 3
        assert client.list_offset(topic, MAX_TIMESTAMP) == 1
        assert client.list_offset(topic, start_ms + 15) == 1
        assert client.list_offset(topic, start_ms + 30) == -1


class LogDirScenarios:
    def test_log_directories_have_the_sizes_of_partitions(
        self, client: LogDirsClient, topic: str
    ) -> None:
        client.create_topic(topic, 2)
        client.produce(topic, [SentRecord(bytes(1000), partition=1)])
        (sizes,) = client.log_dirs(topic).values()
        assert sizes[0] == 0
        assert 1000 < sizes[1] < 1200
