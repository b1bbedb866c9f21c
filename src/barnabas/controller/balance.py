"""Elections that nobody asked for: back to preferred leaders, and unclean ones where allowed."""

from collections.abc import Iterable
from typing import Final

from barnabas.config.dynamic import Resolver
from barnabas.controller.decision import Context
from barnabas.controller.elections import Election, elect, found
from barnabas.metadata.image import Image
from barnabas.metadata.partition_index import PartitionKey
from barnabas.wire.schema import Message

MAX_ELECTIONS: Final = 1000
"""In one go; what is left over is looked at again at the next opportunity."""


class Balance:
    """When to look for partitions that another should lead, and what to do about them."""

    __slots__ = ("_balance_due_ms", "_resolver", "_unclean_due_ms")

    def __init__(self, resolver: Resolver, now_ms: int) -> None:
        self._resolver = resolver
        self._balance_due_ms = now_ms + self._balance_interval_ms
        self._unclean_due_ms = now_ms

    def settings_changed(self) -> None:
        """Unclean elections may have become allowed: look at once."""
        self._unclean_due_ms = 0

    def due_elections(self, image: Image, context: Context, now_ms: int) -> list[Message]:
        records: list[Message] = []
        index = image.topics.index
        if now_ms >= self._unclean_due_ms:
            if index.some_are_leaderless:
                records = self._unclean(index.leaderless, image, context)
            if len(records) < MAX_ELECTIONS:
                self._unclean_due_ms = now_ms + self._unclean_interval_ms
        # One or the other: both could concern the same partition.
        if not records and now_ms >= self._balance_due_ms:
            if index.displaced and self._resolver.broker("auto.leader.rebalance.enable"):
                records = _elections(index.displaced, Election.PREFERRED, image, context)
            if len(records) < MAX_ELECTIONS:
                self._balance_due_ms = now_ms + self._balance_interval_ms
        return records

    def _unclean(
        self, leaderless: Iterable[PartitionKey], image: Image, context: Context
    ) -> list[Message]:
        allowed = (
            (topic.topic_id, number)
            for topic, number, _ in found(image, leaderless)
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
    keys: Iterable[PartitionKey], election: Election, image: Image, context: Context
) -> list[Message]:
    records: list[Message] = []
    for topic, number, _ in found(image, keys):
        record = elect(topic, number, election, image, context)
        if record is not None:
            records.append(record)
            if len(records) == MAX_ELECTIONS:
                break
    return records
