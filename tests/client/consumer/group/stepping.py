"""Members stepped by hand: a test sets the responses and the time."""

from typing import Any

from barnabas.client.cluster.metadata import MetadataSnapshot, PartitionInfo, TopicInfo
from barnabas.client.consumer.group.membership import (
    AssignmentChange,
    GroupMembership,
    ReportError,
    ResolvedSubscription,
    SendToGroupCoordinator,
)
from barnabas.client.errors import KafkaError
from barnabas.client.settings import ConsumerSettings
from barnabas.wire.schema import Message

UNREACHABLE = KafkaError(KafkaError._TRANSPORT, "no broker responds")


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
    """A member, its clock, and its actions that are not complete yet."""

    def __init__(self, member: GroupMembership) -> None:
        self.member = member
        self.now_ms = 1_000_000.0
        self.requests: list[SendToGroupCoordinator] = []
        self.changes: list[AssignmentChange] = []
        self.errors: list[KafkaError] = []

    def subscribe(self, *topics: str) -> None:
        self.member.subscribe(ResolvedSubscription(frozenset(topics)), self.now_ms)
        self.advance()

    def set_metadata(self, **partitions: int) -> None:
        self.member.on_metadata(metadata(**partitions))
        self.advance()

    def wait(self, time_ms: float) -> None:
        self.now_ms += time_ms
        self.advance()

    def poll(self) -> None:
        self.member.on_poll(self.now_ms)
        self.advance()

    def leave(self) -> None:
        self.member.leave()
        self.advance()

    def respond(self, outcome: Message | KafkaError) -> None:
        """Responds to the first request in flight."""
        self.member.on_response(self.requests.pop(0).request, outcome, self.now_ms)
        self.advance()

    def complete_change(self) -> AssignmentChange:
        """Completes the assignment change in progress, and returns it."""
        (change,) = self.changes
        self.changes.clear()
        self.member.on_assignment_changed()
        self.advance()
        return change

    def request(self) -> Any:
        """Returns the only request in flight."""
        (action,) = self.requests
        return action.request

    def advance(self) -> None:
        for action in self.member.advance(self.now_ms):
            if isinstance(action, SendToGroupCoordinator):
                self.requests.append(action)
            elif isinstance(action, ReportError):
                self.errors.append(action.error)
            else:
                self.changes.append(action)
        assert self.member.next_deadline_ms > self.now_ms, "it would be called again and again"


def metadata(**partitions: int) -> MetadataSnapshot:
    """Returns topics with these partition counts; the id of a topic is its name."""
    topics = {
        name: TopicInfo(name, topic_id(name), tuple(PartitionInfo(n) for n in range(count)))
        for name, count in partitions.items()
    }
    return MetadataSnapshot(
        topics=topics, topic_names={topic.topic_id: name for name, topic in topics.items()}
    )


def topic_id(name: str) -> bytes:
    return name.encode().ljust(16, b"\0")
