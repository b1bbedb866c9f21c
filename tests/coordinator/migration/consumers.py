"""Consumers of both protocols as simulations run them: each takes one step at a time, and what it
owns is what it would be consuming."""

from typing import Any

from tests.coordinator.migration.harness import (
    SESSION_MS,
    MigrationHarness,
    assignment,
    code_of,
    read_assignment,
)

from barnabas.coordinator.groups.assignors import ASSIGNORS
from barnabas.coordinator.groups.assignors.model import MemberSubscription, Subscribers, TopicShape
from barnabas.coordinator.groups.consumer.embedded_protocol import by_topic_id, read_subscription
from barnabas.coordinator.pending_response import PendingResponse
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.classic_groups import JoinGroupResponse

Owned = set[tuple[str, int]]

CONSUMER_SESSION_MS = 45_000
"""Kafka's default."""


class ClassicConsumer:
    """Joins, syncs and heartbeats. A cooperative one keeps its partitions in a rebalance and
    gives up only what it has to, joining once more after that; an eager one gives up everything."""

    def __init__(
        self, harness: MigrationHarness, *, cooperative: bool, topics: tuple[str, ...] = ("t",),
        instance: str | None = None,
    ) -> None:  # fmt: skip
        self.harness = harness
        self.is_cooperative = cooperative
        self.topics = topics
        self.instance = instance
        self.owned: Owned = set()
        self._heard_ms = 0
        self._member_id = ""
        self._generation = -1
        self._waiting: tuple[str, PendingResponse[Any]] | None = None
        self._has_to_join = True

    def step(self) -> None:
        if self._waiting is None:
            self._send_request()
        kind, response = self._waiting or ("", None)
        if response is None or not response.is_done:
            return
        self._waiting = None
        code = code_of(response)
        if code:
            self._fail(code, response)
        elif kind == "join":
            self._joined(response.result())
        elif kind == "sync":
            self._synced(read_assignment(response.result().assignment or assignment({})))

    def give_up_when_late(self) -> None:
        """A client knows as well as its coordinator when its session is over."""
        silent_ms = self.harness.environment.clock.now_ms - self._heard_ms
        is_parked = self._waiting is not None and not self._waiting[1].is_done
        if silent_ms >= SESSION_MS and not is_parked:
            self._waiting = None
            self._lose()

    def leave(self) -> None:
        self.owned = set()
        if self._member_id:
            self.harness.leave((self._member_id, self.instance))

    def _send_request(self) -> None:
        self._heard_ms = self.harness.environment.clock.now_ms
        if not self._has_to_join:
            code = self.harness.heartbeat(self._member_id, self._generation, self.instance)
            if code:
                self._fail(code, None)
            return
        if not self.is_cooperative:
            self.owned = set()
        named: dict[str, list[int]] = {}
        for topic, partition in self.owned:
            named.setdefault(topic, []).append(partition)
        self._waiting = (
            "join",
            self.harness.join(
                self._member_id,
                topics=self.topics,
                owned=named,
                generation=self._generation,
                instance=self.instance,
                protocols=("cooperative-sticky", "range") if self.is_cooperative else ("range",),
            ),
        )

    def _joined(self, response: JoinGroupResponse) -> None:
        self._heard_ms = self.harness.environment.clock.now_ms
        self._member_id = response.member_id
        self._generation = response.generation_id
        leads = response.leader == response.member_id and not response.skip_assignment
        self._waiting = (
            "sync",
            self.harness.sync(
                self._member_id,
                self._generation,
                assign(self.harness, response) if leads else None,
                instance=self.instance,
                protocol=response.protocol_name,
            ),
        )

    def _synced(self, assigned: dict[str, set[int]]) -> None:
        now = {(topic, partition) for topic, each in assigned.items() for partition in each}
        has_lost = bool(self.owned - now)
        self.owned = now
        self._has_to_join = self.is_cooperative and has_lost

    def _fail(self, code: ErrorCode, response: PendingResponse[Any] | None) -> None:
        match code:
            case ErrorCode.MEMBER_ID_REQUIRED:
                assert response is not None
                self._member_id = response.result().member_id
            case ErrorCode.REBALANCE_IN_PROGRESS:
                self._has_to_join = True
            case ErrorCode.NOT_COORDINATOR | ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
                self._has_to_join = self._has_to_join or response is not None
            case ErrorCode.ILLEGAL_GENERATION:
                self._lose()
            case ErrorCode.UNKNOWN_MEMBER_ID:
                self._member_id = ""
                self._lose()
            case ErrorCode.INCONSISTENT_GROUP_PROTOCOL:
                pass  # after a failover only one protocol of each member is known, until it joins
            case _:
                raise AssertionError(f"{self._member_id}: {code!r}")

    def _lose(self) -> None:
        self.owned = set()
        self._generation = -1
        self._has_to_join = True


class Consumer:
    """Heartbeats by the consumer protocol: revokes at once what it is not to have any more."""

    def __init__(
        self, harness: MigrationHarness, name: str, *, topics: tuple[str, ...] = ("t",),
        instance: str | None = None,
    ) -> None:  # fmt: skip
        self.harness = harness
        self.name = name
        self.topics = topics
        self.instance = instance
        self.owned: Owned = set()
        self._heard_ms = 0
        self._epoch = 0

    def step(self) -> None:
        self._heard_ms = self.harness.environment.clock.now_ms
        owned: dict[bytes, list[int]] = {}
        for topic, partition in self.owned:
            owned.setdefault(self.harness.topic_id(topic), []).append(partition)
        response = self.harness.consumer_heartbeat(
            self.name, self._epoch, topics=self.topics, owned=owned, instance=self.instance
        )
        self._epoch = response.member_epoch
        if response.assignment is not None:
            self.owned = {
                (self._name_of(topic.topic_id), partition)
                for topic in response.assignment.topic_partitions
                for partition in topic.partitions
            }

    def leave(self) -> None:
        self.owned = set()
        if self._epoch:
            self.harness.consumer_heartbeat(self.name, -1, topics=None, instance=self.instance)

    def give_up_when_late(self) -> None:
        if self.harness.environment.clock.now_ms - self._heard_ms >= CONSUMER_SESSION_MS:
            self.lose()

    def lose(self) -> None:
        self.owned = set()
        self._epoch = 0

    def _name_of(self, topic_id: bytes) -> str:
        topic = self.harness.environment.image.topics.by_id(topic_id)
        assert topic is not None
        return topic.name


def assign(harness: MigrationHarness, response: JoinGroupResponse) -> dict[str, bytes]:
    """The assignment that a leader computes. By a cooperative protocol, no member is assigned
    what another has not given up yet."""
    image = harness.environment.image
    members: dict[str, MemberSubscription] = {}
    topics: dict[bytes, TopicShape] = {}
    for each in response.members:
        result = read_subscription(each.metadata)
        actual = [topic for name in result.topics if (topic := image.topics.by_name(name))]
        topics |= {t.topic_id: TopicShape(t.topic_id, t.name, len(t.partitions)) for t in actual}
        members[each.member_id] = MemberSubscription(
            each.member_id,
            each.group_instance_id,
            frozenset(topic.topic_id for topic in actual),
            by_topic_id(result.owned_partitions, image),
        )
    owners = {
        (topic_id, partition): member.member_id
        for member in members.values()
        for topic_id, partitions in member.assigned.items()
        for partition in partitions
    }
    return {
        member_id: assignment(
            {
                topics[topic_id].name: [
                    each
                    for each in partitions
                    if owners.get((topic_id, each), member_id) == member_id
                ]
                for topic_id, partitions in assigned.items()
            }
        )
        for member_id, assigned in ASSIGNORS["uniform"](Subscribers(members, topics)).items()
    }
