"""Which partitions concern a broker: what a controller would otherwise scan all of them for."""

from collections.abc import Iterable, Iterator

from barnabas.metadata.states import NO_LEADER, PartitionRegistration, TopicImage

PartitionKey = tuple[bytes, int]
"""The id of a topic, and the number of a partition in it."""

# Dictionaries without values: sets would be walked in an order that differs from run to run.
_Keys = dict[PartitionKey, None]


class PartitionIndex:
    """Partitions by what their state says, kept up at a cost that does not grow with their number.

    It is made when a copy of the image first needs it: only the active controller's does.
    """

    __slots__ = ("_eligible_by", "_in_sync_by", "_led_by", "not_led_by_preferred", "reassigning")

    def __init__(self, topics: Iterable[TopicImage]) -> None:
        self._led_by: dict[int, _Keys] = {}
        self._in_sync_by: dict[int, _Keys] = {}
        self._eligible_by: dict[int, _Keys] = {}
        self.not_led_by_preferred: _Keys = {}
        """Led by another than the replica that should, where it can (the preferred leader)."""
        self.reassigning: _Keys = {}
        """To be held by other replicas than now: a reassignment is under way."""
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
        """Where the broker is in the in-sync set."""
        return iter(self._in_sync_by.get(broker_id, ()))

    def eligible_by(self, broker_id: int) -> Iterator[PartitionKey]:
        """Where the broker may lead though it is not in sync (KIP-966)."""
        return iter(self._eligible_by.get(broker_id, ()))

    def update(
        self, key: PartitionKey, before: PartitionRegistration | None, after: PartitionRegistration | None
    ) -> None:
        """A partition became `after`; None is what does not exist."""
        _refile(
            self._led_by,
            key,
            (before.leader,) if before is not None else (),
            (after.leader,) if after is not None else (),
        )
        _refile(
            self._in_sync_by,
            key,
            before.isr if before is not None else (),
            after.isr if after is not None else (),
        )
        _refile(
            self._eligible_by,
            key,
            before.elr if before is not None else (),
            after.elr if after is not None else (),
        )
        _note(self.not_led_by_preferred, key, after is not None and after.leader != after.preferred_leader)
        _note(self.reassigning, key, after is not None and after.is_reassigning)


def _refile(
    filed: dict[int, _Keys], key: PartitionKey, before: tuple[int, ...], after: tuple[int, ...]
) -> None:
    if before == after:
        return
    for broker_id in before:
        if broker_id not in after:
            keys = filed[broker_id]
            keys.pop(key, None)
            if not keys:
                del filed[broker_id]
    for broker_id in after:
        filed.setdefault(broker_id, {})[key] = None


def _note(noted: _Keys, key: PartitionKey, applies: bool) -> None:
    if applies:
        noted[key] = None
    else:
        noted.pop(key, None)
