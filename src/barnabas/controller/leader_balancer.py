"""Elections that nobody asked for: back to preferred leaders, and unclean ones where allowed."""

from collections.abc import Iterable
from typing import Final

from barnabas.config.dynamic import Resolver
from barnabas.controller.context import ControllerContext
from barnabas.controller.partition_change import Election, elect_leader, existing_partitions
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.partition_index import PartitionKey
from barnabas.wire.schema import Message

MAX_ELECTIONS_PER_RUN: Final = 1000
"""In one go; what is left over is looked at again at the next opportunity."""


class LeaderBalancer:
    """When to look for partitions that another should lead, and what to do about them."""

    __slots__ = ("_balance_due_ms", "_resolver", "_unclean_due_ms")

    def __init__(self, resolver: Resolver, now_ms: int) -> None:
        self._resolver = resolver
        self._balance_due_ms = now_ms + self._balance_interval_ms
        self._unclean_due_ms = now_ms

    def on_configs_changed(self) -> None:
        """Unclean elections may have become allowed: look at once."""
        self._unclean_due_ms = 0

    def due_elections(
        self, image: MetadataImage, context: ControllerContext, now_ms: int
    ) -> list[Message]:
        records: list[Message] = []
        index = image.topics.index
        if now_ms >= self._unclean_due_ms:
            if index.has_leaderless:
                records = self._unclean(index.leaderless, image, context)
            if len(records) < MAX_ELECTIONS_PER_RUN:
                self._unclean_due_ms = now_ms + self._unclean_interval_ms
        # One or the other: both could concern the same partition.
        if not records and now_ms >= self._balance_due_ms:
            if index.not_led_by_preferred and self._resolver.broker("auto.leader.rebalance.enable"):
                records = _elections(index.not_led_by_preferred, Election.PREFERRED, image, context)
            if len(records) < MAX_ELECTIONS_PER_RUN:
                self._balance_due_ms = now_ms + self._balance_interval_ms
        return records

    def _unclean(
        self, leaderless: Iterable[PartitionKey], image: MetadataImage, context: ControllerContext
    ) -> list[Message]:
        allowed = (
            (topic.topic_id, number)
            for topic, number, _ in existing_partitions(image, leaderless)
            if self._resolver.topic(topic.name)["unclean.leader.election.enable"]
        )
        return _elections(allowed, Election.UNCLEAN, image, context)

    @property
    def _balance_interval_ms(self) -> int:
        return int(self._resolver.broker("leader.imbalance.check.interval.seconds")) * 1000

    @property
    def _unclean_interval_ms(self) -> int:
        return int(self._resolver.broker("unclean.leader.election.interval.ms"))


def _elections(
    keys: Iterable[PartitionKey],
    election: Election,
    image: MetadataImage,
    context: ControllerContext,
) -> list[Message]:
    records: list[Message] = []
    for topic, number, _ in existing_partitions(image, keys):
        record = elect_leader(topic, number, election, image, context)
        if record is not None:
            records.append(record)
            if len(records) == MAX_ELECTIONS_PER_RUN:
                break
    return records
