"""Builds heartbeats: all fields at first, then only those that have changed.

After a heartbeat without a response all fields are sent again: the coordinator may have received
it or not.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from barnabas.client.consumer.group.membership import ResolvedSubscription
from barnabas.client.settings import ConsumerSettings
from barnabas.client.values import PartitionKey, group_by_topic
from barnabas.wire.messages.consumer_groups import ConsumerGroupHeartbeatRequest, TopicPartitions

NO_PATTERN = ""


@dataclass(slots=True, frozen=True)
class HeartbeatFields:
    """The fields of a heartbeat that change: the subscription and the owned partitions."""

    subscription: ResolvedSubscription
    owned: frozenset[PartitionKey] = frozenset()

    @property
    def pattern(self) -> str:
        return self.subscription.pattern or NO_PATTERN


class HeartbeatRequestBuilder:
    """Builds heartbeats, and remembers the fields that the coordinator has acknowledged."""

    def __init__(self, settings: ConsumerSettings, member_id: str) -> None:
        assert settings.group_id is not None
        self._settings = settings
        self._group_id = settings.group_id
        self._member_id = member_id
        self._acknowledged: HeartbeatFields | None = None  # None: perhaps nothing
        self._sent: HeartbeatFields | None = None

    def has_changed(self, fields: HeartbeatFields) -> bool:
        acknowledged = self._acknowledged
        return acknowledged is not None and (
            (acknowledged.subscription.names, acknowledged.pattern)
            != (fields.subscription.names, fields.pattern)
            or acknowledged.owned != fields.owned
        )

    def build(
        self, epoch: int, fields: HeartbeatFields, topic_ids: Mapping[str, bytes]
    ) -> ConsumerGroupHeartbeatRequest:
        """Returns a heartbeat with the fields that are not acknowledged."""
        acknowledged, self._sent = self._acknowledged, fields
        request = self._request(epoch)
        if acknowledged is None:
            request.instance_id = self._settings.group_instance_id
            request.rack_id = self._settings.client_rack or None
            request.rebalance_timeout_ms = self._settings.max_poll_interval_ms
            request.server_assignor = self._settings.group_remote_assignor
        if acknowledged is None or acknowledged.subscription.names != fields.subscription.names:
            request.subscribed_topic_names = sorted(fields.subscription.names)
        if fields.pattern != (NO_PATTERN if acknowledged is None else acknowledged.pattern):
            request.subscribed_topic_regex = fields.pattern
        if acknowledged is None or acknowledged.owned != fields.owned:
            request.topic_partitions = [
                TopicPartitions(topic_id=topic_ids[topic], partitions=indexes)
                for topic, indexes in group_by_topic(sorted(fields.owned)).items()
            ]
        return request

    def build_leave(self, epoch: int) -> ConsumerGroupHeartbeatRequest:
        self.reset()
        request = self._request(epoch)
        request.instance_id = self._settings.group_instance_id
        return request

    def on_acknowledged(self) -> None:
        """The coordinator has responded to the last heartbeat."""
        self._acknowledged = self._sent

    def reset(self) -> None:
        """The coordinator may have no state of this member: the next heartbeat is full."""
        self._acknowledged = None

    def _request(self, epoch: int) -> ConsumerGroupHeartbeatRequest:
        return ConsumerGroupHeartbeatRequest(
            group_id=self._group_id, member_id=self._member_id, member_epoch=epoch
        )
