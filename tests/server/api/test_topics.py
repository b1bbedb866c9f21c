"""Metadata and DescribeTopicPartitions respond as Kafka 4.3 does."""

from typing import Any

import pytest
from tests.replication.world import World

from barnabas.server.api import describe_topic_partitions, metadata
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.metadata import (
    Cursor,
    DescribeTopicPartitionsRequest,
    MetadataRequest,
    MetadataRequestTopic,
    TopicRequest,
)
from barnabas.wire.messages.topics import CreateTopicsRequest, CreateTopicsResponse


def described(
    world: World, *names: str, limit: int = 2000, cursor: tuple[str, int] | None = None
) -> Any:
    topic_partition = Cursor(topic_name=cursor[0], partition_index=cursor[1]) if cursor else None
    request = DescribeTopicPartitionsRequest(
        topics=[TopicRequest(name=name) for name in names],
        response_partition_limit=limit,
        cursor=topic_partition,
    )
    return world.request(describe_topic_partitions.handle, request, 0)


def pages(world: World, *names: str, limit: int) -> list[list[tuple[str, list[int]]]]:
    """Returns the topics of all pages, by following the cursors."""
    reported: list[list[tuple[str, list[int]]]] = []
    cursor = None
    while cursor is not None or not reported:
        page = described(world, *names, limit=limit, cursor=cursor)
        reported.append(
            [
                (topic.name, [partition.partition_index for partition in topic.partitions])
                for topic in page.topics
            ]
        )
        following = page.next_cursor
        cursor = (following.topic_name, following.partition_index) if following else None
    return reported


def test_a_full_page_does_not_contain_the_next_topic(
    world: World,
) -> None:
    world.create_topic("orders", 2)
    world.create_topic("parcels", 1)
    assert pages(world, "orders", "parcels", limit=2) == [[("orders", [0, 1])], [("parcels", [0])]]
    assert pages(world, "orders", "pails", limit=2) == [[("orders", [0, 1])], [("pails", [])]]
    assert pages(world, limit=1) == [[("orders", [0])], [("orders", [1])], [("parcels", [0])]]


@pytest.mark.parametrize("cursor", [("pails", 0), ("zebras", 0), ("", 0), ("orders", -1)])
def test_a_cursor_outside_the_requested_topics_is_rejected(
    world: World, cursor: tuple[str, int]
) -> None:
    world.create_topic("orders")
    with pytest.raises(KafkaError) as error:
        described(world, "orders", cursor=cursor)
    assert error.value.code is ErrorCode.INVALID_REQUEST


def test_an_unknown_topic_and_an_invalid_name_have_different_errors(world: World) -> None:
    response = described(world, "no/name", "pails")
    assert [(topic.name, topic.error_code) for topic in response.topics] == [
        ("no/name", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("pails", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]


def test_without_requested_topics_the_cursor_may_be_at_a_deleted_one(world: World) -> None:
    world.create_topic("orders")
    assert [topic.name for topic in described(world, cursor=("oranges", 0)).topics] == ["orders"]


class Controller:
    """Records the topics to create."""

    def __init__(self) -> None:
        self.asked: list[CreateTopicsRequest] = []

    async def handle(
        self, request: CreateTopicsRequest, *, timeout_ms: int
    ) -> CreateTopicsResponse:
        self.asked.append(request)
        return CreateTopicsResponse()


def test_internal_topics_are_created_by_their_own_settings(
    world: World,
) -> None:
    controller: Any = Controller()
    world.broker.controller = controller
    names = ["__consumer_offsets", "__share_group_state", "__transaction_state", "orders"]
    sent_request = MetadataRequest(topics=[MetadataRequestTopic(name=name) for name in names])
    world.request(metadata.handle, sent_request, 9)
    (request,) = controller.asked
    made = {
        topic.name: (topic.num_partitions, topic.replication_factor) for topic in request.topics
    }
    assert made == dict.fromkeys(names[:3], (50, 3)) | {"orders": (1, 1)}
    configs = {
        topic.name: {config.name: config.value for config in topic.configs}
        for topic in request.topics
    }
    assert configs["__consumer_offsets"] == {
        "cleanup.policy": "compact",
        "compression.type": "producer",
        "segment.bytes": "104857600",
    }
    assert configs["__transaction_state"]["min.insync.replicas"] == "2"
    assert configs["__share_group_state"]["retention.ms"] == "-1"


@pytest.mark.parametrize("version", [12, 13])
def test_metadata_by_id_ignores_the_name(world: World, version: int) -> None:
    topic_id = world.create_topic("orders")
    requested = MetadataRequestTopic(name="parcels", topic_id=topic_id)
    response = world.request(metadata.handle, MetadataRequest(topics=[requested]), version)
    assert [(topic.name, topic.error_code) for topic in response.topics] == [("orders", 0)]
