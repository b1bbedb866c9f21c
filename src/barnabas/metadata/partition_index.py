"""An index of partitions by broker, so that the controller does not scan all of them."""

from collections.abc import Iterable, Iterator

from barnabas.metadata.states import NO_LEADER, PartitionRegistration, TopicImage

PartitionKey = tuple[bytes, int]
"""The id of a topic, and the index of a partition."""

# Dictionaries without values: the order of a set differs from run to run.
_Keys = dict[PartitionKey, None]


class PartitionIndex:
    """Partitions by broker and by state; an update does not depend on the number of partitions.

    It is built at the first use: only the image of the active controller uses it.
    """

    __slots__ = ("_eligible_by", "_in_sync_by", "_led_by", "not_led_by_preferred", "reassigning")

    def __init__(self, topics: Iterable[TopicImage]) -> None:
        self._led_by: dict[int, _Keys] = {}
        self._in_sync_by: dict[int, _Keys] = {}
        self._eligible_by: dict[int, _Keys] = {}
        self.not_led_by_preferred: _Keys = {}
        """Partitions whose leader is not their preferred replica."""
        self.reassigning: _Keys = {}
        """Partitions with a reassignment in progress."""
        for topic in topics:
            for number, partition in topic.partitions.items():
                self.update((topic.topic_id, number), None, partition)

    def led_by(self, broker_id: int) -> Iterator[PartitionKey]:
        return iter(self._led_by.get(broker_id, ()))

    def leads_anything(self, broker_id: int) -> bool:
        return broker_id in self._led_by

    @property
    def leaderless(self) -> Iterator[PartitionKey]:
        return self.led_by(NO_LEADER)

    @property
    def has_leaderless(self) -> bool:
        return self.leads_anything(NO_LEADER)

    def in_sync_by(self, broker_id: int) -> Iterator[PartitionKey]:
        """Yields the partitions with the broker in the ISR."""
        return iter(self._in_sync_by.get(broker_id, ()))

    def eligible_by(self, broker_id: int) -> Iterator[PartitionKey]:
        """Yields the partitions with the broker in the eligible leader replicas (KIP-966)."""
        return iter(self._eligible_by.get(broker_id, ()))

    def update(
        self,
        key: PartitionKey,
        before: PartitionRegistration | None,
        after: PartitionRegistration | None,
    ) -> None:
        """Updates the index for a partition; None stands for one that does not exist."""
        _update_index(
            self._led_by,
            key,
            (before.leader,) if before is not None else (),
            (after.leader,) if after is not None else (),
        )
        _update_index(
            self._in_sync_by,
            key,
            before.isr if before is not None else (),
            after.isr if after is not None else (),
        )
        _update_index(
            self._eligible_by,
            key,
            before.elr if before is not None else (),
            after.elr if after is not None else (),
        )
        _set_membership(
            self.not_led_by_preferred,
            key,
            after is not None and after.leader != after.preferred_leader,
        )
        _set_membership(self.reassigning, key, after is not None and after.is_reassigning)


def _update_index(
    index: dict[int, _Keys], key: PartitionKey, before: tuple[int, ...], after: tuple[int, ...]
) -> None:
    if before == after:
        return
    for broker_id in before:
        if broker_id not in after:
            keys = index[broker_id]
            keys.pop(key, None)
            if not keys:
                del index[broker_id]
    for broker_id in after:
        index.setdefault(broker_id, {})[key] = None


def _set_membership(keys_of_state: _Keys, key: PartitionKey, is_member: bool) -> None:
    if is_member:
        keys_of_state[key] = None
    else:
        keys_of_state.pop(key, None)
