"""What a member says in its heartbeats: everything to begin with, then only what has changed.

After a heartbeat that nobody answered it says everything again: who knows what was heard.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from barnabas.client.consumer.group.member import ResolvedSubscription
from barnabas.client.consumer.group.partitions import by_topic
from barnabas.client.settings import ConsumerSettings
from barnabas.client.values import TopicPartitionTuple
from barnabas.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    TopicPartitions,
)

NO_PATTERN = ""


@dataclass(slots=True, frozen=True)
class HeartbeatFields:
    """What a member has and wants."""

    sought: ResolvedSubscription
    owned: frozenset[TopicPartitionTuple] = frozenset()

    @property
    def pattern(self) -> str:
        return self.sought.pattern or NO_PATTERN


class HeartbeatRequestBuilder:
    """Makes heartbeats, and remembers what the coordinator has heard."""

    def __init__(self, settings: ConsumerSettings, member_id: str) -> None:
        assert settings.group_id is not None
        self._settings = settings
        self._group_id = settings.group_id
        self._member_id = member_id
        self._heard: HeartbeatFields | None = None  # None: perhaps nothing
        self._saying: HeartbeatFields | None = None

    def has_changed(self, now: HeartbeatFields) -> bool:
        heard = self._heard
        return heard is not None and (
            (heard.sought.names, heard.pattern) != (now.sought.names, now.pattern)
            or heard.owned != now.owned
        )

    def build(
        self, epoch: int, now: HeartbeatFields, ids: Mapping[str, bytes]
    ) -> ConsumerGroupHeartbeatRequest:
        """With what is new since the last that was answered."""
        before, self._saying = self._heard, now
        request = self._request(epoch)
        if before is None:
            request.instance_id = self._settings.group_instance_id
            request.rack_id = self._settings.client_rack or None
            request.rebalance_timeout_ms = self._settings.max_poll_interval_ms
            request.server_assignor = self._settings.group_remote_assignor
        if before is None or before.sought.names != now.sought.names:
            request.subscribed_topic_names = sorted(now.sought.names)
        if now.pattern != (NO_PATTERN if before is None else before.pattern):
            request.subscribed_topic_regex = now.pattern
        if before is None or before.owned != now.owned:
            request.topic_partitions = [
                TopicPartitions(topic_id=ids[topic], partitions=indexes)
                for topic, indexes in by_topic(now.owned).items()
            ]
        return request

    def build_leave(self, epoch: int) -> ConsumerGroupHeartbeatRequest:
        self.reset()
        request = self._request(epoch)
        request.instance_id = self._settings.group_instance_id
        return request

    def on_acknowledged(self) -> None:
        """The last heartbeat was answered."""
        self._heard = self._saying

    def reset(self) -> None:
        """The coordinator may know nothing of this member."""
        self._heard = None

    def _request(self, epoch: int) -> ConsumerGroupHeartbeatRequest:
        return ConsumerGroupHeartbeatRequest(
            group_id=self._group_id, member_id=self._member_id, member_epoch=epoch
        )
