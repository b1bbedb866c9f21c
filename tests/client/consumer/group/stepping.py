"""Members stepped by hand: a test says what is answered, and what time it is."""

from typing import Any

from barnabas.client.cluster.metadata import MetadataSnapshot, PartitionInfo, TopicInfo
from barnabas.client.consumer.group.member import (
    AssignmentChange,
    GroupMembership,
    ReportError,
    ResolvedSubscription,
    SendToGroupCoordinator,
)
from barnabas.client.errors import KafkaError
from barnabas.client.settings import ConsumerSettings
from barnabas.wire.schema import Message

UNREACHABLE = KafkaError(KafkaError._TRANSPORT, "nobody there")


def settings(**changed: Any) -> ConsumerSettings:
    defaults = {
        "group_id": "g",
        "session_timeout_ms": 10_000,
        "heartbeat_interval_ms": 3_000,
        "max_poll_interval_ms": 60_000,
        "retry_backoff_ms": 100,
    }
    return ConsumerSettings(**(defaults | changed))


class Stepped:
    """A member, its clock, and everything it wanted so far that is not answered."""

    def __init__(self, member: GroupMembership) -> None:
        self.member = member
        self.now_ms = 1_000_000.0
        self.asked: list[SendToGroupCoordinator] = []
        self.hand_overs: list[AssignmentChange] = []
        self.told: list[KafkaError] = []

    def subscribe(self, *topics: str) -> None:
        self.member.subscribe(ResolvedSubscription(frozenset(topics)), self.now_ms)
        self.look()

    def hear(self, **partitions: int) -> None:
        self.member.on_metadata(metadata(**partitions))
        self.look()

    def wait(self, time_ms: float) -> None:
        self.now_ms += time_ms
        self.look()

    def poll(self) -> None:
        self.member.on_poll(self.now_ms)
        self.look()

    def leave(self) -> None:
        self.member.leave()
        self.look()

    def answer(self, outcome: Message | KafkaError) -> None:
        """To what was asked first."""
        self.member.on_response(self.asked.pop(0).request, outcome, self.now_ms)
        self.look()

    def hand_over(self) -> AssignmentChange:
        """Let the assignee do what it is wanted to."""
        (step,) = self.hand_overs
        self.hand_overs.clear()
        self.member.on_assignment_changed()
        self.look()
        return step

    def request(self) -> Any:
        """The only one under way."""
        (ask,) = self.asked
        return ask.request

    def look(self) -> None:
        for step in self.member.advance(self.now_ms):
            if isinstance(step, SendToGroupCoordinator):
                self.asked.append(step)
            elif isinstance(step, ReportError):
                self.told.append(step.error)
            else:
                self.hand_overs.append(step)
        assert self.member.next_deadline_ms > self.now_ms, "it would be woken again and again"


def metadata(**partitions: int) -> MetadataSnapshot:
    """Topics with so many partitions; the id of each is its name."""
    topics = {
        name: TopicInfo(name, topic_id(name), tuple(PartitionInfo(n) for n in range(count)))
        for name, count in partitions.items()
    }
    return MetadataSnapshot(
        topics=topics, topic_names={topic.topic_id: name for name, topic in topics.items()}
    )


def topic_id(name: str) -> bytes:
    return name.encode().ljust(16, b"\0")
