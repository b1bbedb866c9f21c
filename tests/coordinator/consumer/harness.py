"""A coordinator of consumer groups, with short methods for the requests of members."""

from collections.abc import Iterable
from typing import Any

from tests.coordinator.environment import CoordinatorEnvironment, Settings

from barnabas.coordinator.groups import consumer
from barnabas.coordinator.groups.consumer.group import ConsumerGroup
from barnabas.coordinator.groups.state import GROUP_RECORDS, GroupCoordinatorState
from barnabas.coordinator.pending_response import PendingResponse
from barnabas.coordinator.records import CoordinatorRecord
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.consumer_groups import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)

GROUP = "g"
SESSION_MS = 45_000
REBALANCE_MS = 30_000
INTERVAL_MS = 1_000
"""Kafka's defaults; the last is between two assignments."""

Partitions = set[tuple[bytes, int]]


class ConsumerHarness:
    """One coordinator and, unless said otherwise, one group."""

    def __init__(self, **settings: Any) -> None:
        self.environment = CoordinatorEnvironment(Settings(**settings))
        self.groups: GroupCoordinatorState = self.lead()

    @property
    def group(self) -> ConsumerGroup:
        group = self.groups.by_id[GROUP]
        assert isinstance(group, ConsumerGroup)
        return group

    @property
    def written(self) -> list[CoordinatorRecord]:
        return self.environment.log.records(GROUP_RECORDS)

    def lead(self) -> GroupCoordinatorState:
        """Becomes the coordinator by loading the log, also if it was the coordinator before."""
        self.groups = self.environment.lead_groups()
        return self.groups

    def advance(self, delay_ms: int) -> None:
        self.environment.advance(delay_ms)

    def topic(self, name: str, partitions: int) -> bytes:
        """A topic with so many partitions, or with more if it is there; its id."""
        self.environment.image.offset += 1
        return self.environment.create_topic(name, partitions)

    def send(
        self, member_id: str, epoch: int, *, version: int = 1, group: str = GROUP, **fields: Any
    ) -> PendingResponse[ConsumerGroupHeartbeatResponse]:
        request = ConsumerGroupHeartbeatRequest(
            group_id=group, member_id=member_id, member_epoch=epoch, **fields
        )
        return self.environment.decide(consumer.heartbeat, request, version)

    def heartbeat(
        self, member_id: str, epoch: int, **fields: Any
    ) -> ConsumerGroupHeartbeatResponse:
        return self.send(member_id, epoch, **fields).result()

    def code(self, member_id: str, epoch: int, **fields: Any) -> ErrorCode:
        """Returns the error code of the response."""
        error = self.send(member_id, epoch, **fields).error
        assert error is None or isinstance(error, KafkaError), error
        return error.code if error is not None else ErrorCode.NONE

    def join(self, member_id: str, *topics: str, **fields: Any) -> ConsumerGroupHeartbeatResponse:
        return self.heartbeat(member_id, 0, **joining(topics), **fields)

    def stable(self, *member_ids: str, topic: str = "t", partitions: int = 4) -> int:
        """A group of these members that is stable; the epoch of all."""
        self.topic(topic, partitions)
        members = {each: Member(self, each) for each in member_ids}
        for member in members.values():
            member.join(topic)
        self.advance(INTERVAL_MS)
        for _ in range(3):
            for member in members.values():
                member.heartbeat()
        assert self.group.state_name == "Stable"
        return self.group.epoch


class Member:
    """A member that follows the protocol: it revokes first, and reports its partitions."""

    def __init__(
        self, harness: ConsumerHarness, member_id: str, instance: str | None = None
    ) -> None:
        self.harness = harness
        self.member_id = member_id
        self.instance = instance
        self.epoch = 0
        self.owned: Partitions = set()

    def join(self, *topics: str, **fields: Any) -> ConsumerGroupHeartbeatResponse:
        self.epoch, self.owned = 0, set()
        return self._adopt(
            self.harness.heartbeat(
                self.member_id, 0, **joining(topics), instance_id=self.instance, **fields
            )
        )

    def heartbeat(self, **fields: Any) -> ConsumerGroupHeartbeatResponse:
        """Reports its partitions, and adopts those of the response."""
        return self._adopt(
            self.harness.heartbeat(
                self.member_id,
                self.epoch,
                topic_partitions=report(self.owned),
                instance_id=self.instance,
                **fields,
            )
        )

    def _adopt(self, response: ConsumerGroupHeartbeatResponse) -> ConsumerGroupHeartbeatResponse:
        self.epoch = response.member_epoch
        if response.assignment is not None:
            self.owned = assigned(response)
        return response


def joining(topics: Iterable[str]) -> dict[str, Any]:
    """What every join has to say; no topics leaves the subscription to others."""
    names = list(topics)
    return {
        "rebalance_timeout_ms": REBALANCE_MS,
        "topic_partitions": [],
        "subscribed_topic_names": names or None,
    }


def report(owned: Iterable[tuple[bytes, int]]) -> list[TopicPartitions]:
    by_topic: dict[bytes, list[int]] = {}
    for topic_id, partition in sorted(owned):
        by_topic.setdefault(topic_id, []).append(partition)
    return [TopicPartitions(topic_id=each, partitions=by_topic[each]) for each in by_topic]


def assigned(response: ConsumerGroupHeartbeatResponse) -> Partitions:
    assert response.assignment is not None
    return {
        (topic.topic_id, partition)
        for topic in response.assignment.topic_partitions
        for partition in topic.partitions
    }
