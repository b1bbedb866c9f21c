"""Periodic elections: of preferred leaders, and unclean ones for topics that allow them."""

from collections.abc import Iterable
from typing import Final

from barnabas.config.resolver import ConfigResolver
from barnabas.controller.context import ControllerContext
from barnabas.controller.partition_change import Election, elect_leader, existing_partitions
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.partition_index import PartitionKey
from barnabas.wire.schema import Message

MAX_ELECTIONS_PER_RUN: Final = 1000
"""The remaining partitions follow in the next run."""


class LeaderBalancer:
    """Decides when periodic elections are due, and which partitions they change."""

    __slots__ = ("_balance_due_ms", "_resolver", "_unclean_due_ms")

    def __init__(self, resolver: ConfigResolver, now_ms: int) -> None:
        self._resolver = resolver
        self._balance_due_ms = now_ms + self._balance_interval_ms
        self._unclean_due_ms = now_ms

    def on_configs_changed(self) -> None:
        """Makes unclean elections due at once, as a config may allow them now."""
        self._unclean_due_ms = 0

    def due_elections(
        self, image: MetadataImage, context: ControllerContext, now_ms: int
    ) -> list[Message]:
        records: list[Message] = []
        index = image.topics.index
        if now_ms >= self._unclean_due_ms:
            if index.has_leaderless:
                records = self._unclean_elections(index.leaderless, image, context)
            if len(records) < MAX_ELECTIONS_PER_RUN:
                self._unclean_due_ms = now_ms + self._unclean_interval_ms
        # Only one kind in a run: both could change the same partition.
        if not records and now_ms >= self._balance_due_ms:
            if index.not_led_by_preferred and self._resolver.broker("auto.leader.rebalance.enable"):
                records = _elect_leaders(
                    index.not_led_by_preferred, Election.PREFERRED, image, context
                )
            if len(records) < MAX_ELECTIONS_PER_RUN:
                self._balance_due_ms = now_ms + self._balance_interval_ms
        return records

    def _unclean_elections(
        self, leaderless: Iterable[PartitionKey], image: MetadataImage, context: ControllerContext
    ) -> list[Message]:
        allowed = (
            (topic.topic_id, number)
            for topic, number, _ in existing_partitions(image, leaderless)
            if self._resolver.topic(topic.name)["unclean.leader.election.enable"]
        )
        return _elect_leaders(allowed, Election.UNCLEAN, image, context)

    @property
    def _balance_interval_ms(self) -> int:
        return int(self._resolver.broker("leader.imbalance.check.interval.seconds")) * 1000

    @property
    def _unclean_interval_ms(self) -> int:
        return int(self._resolver.broker("unclean.leader.election.interval.ms"))


def _elect_leaders(
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
