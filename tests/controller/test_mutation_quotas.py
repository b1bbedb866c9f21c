"""Partitions that are created and deleted take tokens, and a client over quota is rejected."""

from typing import Any

import pytest
from tests.controller.conftest import World, broker

from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.topics import (
    CreatableTopic,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DeleteTopicState,
)


class Tokens:
    """A quota that rejects what it has no tokens for."""

    def __init__(self, count: int) -> None:
        self.count = count

    def record(self, count: int) -> None:
        if self.count <= 0:
            raise KafkaError(ErrorCode.THROTTLING_QUOTA_EXCEEDED, "wait")
        self.count -= count


@pytest.fixture
def world() -> World:
    return World(broker(1))


def create(world: World, *topics: tuple[str, int], **options: bool) -> list[int]:
    request = CreateTopicsRequest(
        topics=[
            CreatableTopic(name=name, num_partitions=count, replication_factor=1)
            for name, count in topics
        ],
        **options,
    )
    response: Any = world.decide(request).response
    return [topic.error_code for topic in response.topics]


def test_topics_beyond_the_quota_are_rejected_one_by_one(world: World) -> None:
    world.mutation_quota = Tokens(3)
    codes = create(world, ("a", 2), ("b", 2), ("c", 1))
    assert codes == [ErrorCode.NONE, ErrorCode.NONE, ErrorCode.THROTTLING_QUOTA_EXCEEDED]
    assert [topic.name for topic in world.image.topics] == ["a", "b"]


def test_topics_that_exist_take_no_tokens_and_validation_does(world: World) -> None:
    create(world, ("a", 2))
    world.mutation_quota = quota = Tokens(3)
    assert create(world, ("a", 2)) == [ErrorCode.TOPIC_ALREADY_EXISTS]
    assert quota.count == 3
    assert create(world, ("b", 2), validate_only=True) == [ErrorCode.NONE]
    assert quota.count == 1


def test_new_partitions_and_deleted_ones_take_tokens(world: World) -> None:
    create(world, ("a", 2), ("b", 3), ("c", 1))
    world.mutation_quota = quota = Tokens(7)
    more = CreatePartitionsTopic(name="a", count=4, assignments=None)
    response: Any = world.decide(CreatePartitionsRequest(topics=[more])).response
    assert (response.results[0].error_code, quota.count) == (ErrorCode.NONE, 5)
    states = [DeleteTopicState(name=name) for name in ("a", "b", "c")]
    response = world.decide(DeleteTopicsRequest(topics=states)).response
    assert {result.name: result.error_code for result in response.responses} == {
        "a": ErrorCode.NONE,
        "b": ErrorCode.NONE,
        "c": ErrorCode.THROTTLING_QUOTA_EXCEEDED,
    }
    assert [topic.name for topic in world.image.topics] == ["c"]
