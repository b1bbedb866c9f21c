"""Members of consumer groups (KIP-848), in few words."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.conformance.same.conftest import PLAIN
from tests.conformance.same.talk import Talk

from barnabas.wire.messages.configs import (
    IncrementalAlterableConfig,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
)
from barnabas.wire.messages.consumer_groups import ConsumerGroupHeartbeatRequest, TopicPartitions

LEAVING = -1
LEAVING_FOR_A_WHILE = -2
REBALANCE_MS = 30_000
GROUP = 32
SET = 0
PAUSE = "consumer.assignment.interval.ms"
"""KIP-1263; the brokers of these tests are started without one."""


def beat(
    group: str,
    member_id: str,
    epoch: int,
    *,
    topics: Sequence[str] | None = None,
    owned: Mapping[bytes, Sequence[int]] | None = None,
    **fields: Any,
) -> ConsumerGroupHeartbeatRequest:
    return ConsumerGroupHeartbeatRequest(
        group_id=group,
        member_id=member_id,
        member_epoch=epoch,
        subscribed_topic_names=None if topics is None else list(topics),
        topic_partitions=None
        if owned is None
        else [
            TopicPartitions(topic_id=topic, partitions=list(each)) for topic, each in owned.items()
        ],
        **fields,
    )


def first_beat(group: str, member_id: str, **fields: Any) -> ConsumerGroupHeartbeatRequest:
    """Everything that a member must say to join."""
    said: dict[str, Any] = {"rebalance_timeout_ms": REBALANCE_MS, "topics": [PLAIN], "owned": {}}
    return beat(group, member_id, 0, **(said | fields))


def configure(talk: Talk, group: str, name: str, value: str) -> None:
    """Change one of the group's own settings."""
    setting = IncrementalAlterableConfig(name=name, config_operation=SET, value=value)
    resource = IncrementalAlterConfigsResource(
        resource_type=GROUP, resource_name=group, configs=[setting]
    )
    talk.ask(IncrementalAlterConfigsRequest(resources=[resource]))


@dataclass(slots=True)
class Consumer:
    """A member that follows what it is told: what it owns is what it was last assigned."""

    talk: Talk
    group: str
    member_id: str
    epoch: int = 0
    owned: dict[bytes, list[int]] = field(default_factory=dict)

    def join(self, **fields: Any) -> "Consumer":
        return self._take(self.talk.ask(first_beat(self.group, self.member_id, **fields)))

    def beat(self, **fields: Any) -> "Consumer":
        said = {"owned": self.owned} | fields
        return self._take(self.talk.ask(beat(self.group, self.member_id, self.epoch, **said)))

    def beat_until_owning(self, count: int) -> "Consumer":
        """Until the coordinator has got round to giving it that many partitions."""
        return self._beat_until(lambda: self._owned_count() == count)

    def beat_until_epoch(self, epoch: int) -> "Consumer":
        return self._beat_until(lambda: self.epoch == epoch)

    def _beat_until(self, is_there: Callable[[], bool]) -> "Consumer":
        def beats() -> ConsumerGroupHeartbeatRequest:
            return beat(self.group, self.member_id, self.epoch, owned=self.owned)

        self.talk.ask_until(beats, 1, lambda answer: bool(self._take(answer)) and is_there())
        return self

    def leave(self, epoch: int = LEAVING, **fields: Any) -> None:
        self.talk.ask(beat(self.group, self.member_id, epoch, **fields))

    def _owned_count(self) -> int:
        return sum(map(len, self.owned.values()))

    def _take(self, answer: Any) -> "Consumer":
        assert answer.error_code == 0, answer
        self.epoch = answer.member_epoch
        if answer.assignment is not None:
            self.owned = {
                each.topic_id: each.partitions for each in answer.assignment.topic_partitions
            }
        return self
