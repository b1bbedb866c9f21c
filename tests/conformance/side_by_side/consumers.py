"""Members of consumer groups (KIP-848) and their heartbeats."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.conformance.side_by_side.conftest import PLAIN
from tests.conformance.side_by_side.dialog import Dialog

from barnabas.wire.messages.configs import (
    IncrementalAlterableConfig,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
)
from barnabas.wire.messages.consumer_groups import ConsumerGroupHeartbeatRequest, TopicPartitions

LEAVING = -1
LEAVING_TEMPORARILY = -2
REBALANCE_MS = 30_000
GROUP = 32
SET = 0
ASSIGNMENT_INTERVAL = "consumer.assignment.interval.ms"
"""KIP-1263; the brokers of these tests start with 0."""


def consumer_heartbeat(
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
            TopicPartitions(topic_id=topic, partitions=list(partitions))
            for topic, partitions in owned.items()
        ],
        **fields,
    )


def first_heartbeat(group: str, member_id: str, **fields: Any) -> ConsumerGroupHeartbeatRequest:
    """Returns the first heartbeat of a member, with all required fields."""
    all_fields: dict[str, Any] = {
        "rebalance_timeout_ms": REBALANCE_MS,
        "topics": [PLAIN],
        "owned": {},
    }
    return consumer_heartbeat(group, member_id, 0, **(all_fields | fields))


def configure(dialog: Dialog, group: str, name: str, value: str) -> None:
    """Changes a setting of the group."""
    setting = IncrementalAlterableConfig(name=name, config_operation=SET, value=value)
    resource = IncrementalAlterConfigsResource(
        resource_type=GROUP, resource_name=group, configs=[setting]
    )
    dialog.send(IncrementalAlterConfigsRequest(resources=[resource]))


@dataclass(slots=True)
class Consumer:
    """A member that owns the partitions of its last assignment."""

    dialog: Dialog
    group: str
    member_id: str
    epoch: int = 0
    owned: dict[bytes, list[int]] = field(default_factory=dict)

    def join(self, **fields: Any) -> "Consumer":
        return self._on_response(
            self.dialog.send(first_heartbeat(self.group, self.member_id, **fields))
        )

    def heartbeat(self, **fields: Any) -> "Consumer":
        all_fields = {"owned": self.owned} | fields
        return self._on_response(
            self.dialog.send(
                consumer_heartbeat(self.group, self.member_id, self.epoch, **all_fields)
            )
        )

    def heartbeat_until_owning(self, count: int) -> "Consumer":
        """Sends heartbeats until it owns this number of partitions."""
        return self._heartbeat_until(lambda: self._owned_count() == count)

    def heartbeat_until_epoch(self, epoch: int) -> "Consumer":
        return self._heartbeat_until(lambda: self.epoch == epoch)

    def _heartbeat_until(self, is_expected: Callable[[], bool]) -> "Consumer":
        def next_heartbeat() -> ConsumerGroupHeartbeatRequest:
            return consumer_heartbeat(self.group, self.member_id, self.epoch, owned=self.owned)

        self.dialog.send_until(
            next_heartbeat, 1, lambda response: bool(self._on_response(response)) and is_expected()
        )
        return self

    def leave(self, epoch: int = LEAVING, **fields: Any) -> None:
        self.dialog.send(consumer_heartbeat(self.group, self.member_id, epoch, **fields))

    def _owned_count(self) -> int:
        return sum(map(len, self.owned.values()))

    def _on_response(self, response: Any) -> "Consumer":
        assert response.error_code == 0, response
        self.epoch = response.member_epoch
        if response.assignment is not None:
            self.owned = {
                partition.topic_id: partition.partitions
                for partition in response.assignment.topic_partitions
            }
        return self
