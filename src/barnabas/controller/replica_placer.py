"""Places the replicas of new partitions on brokers, like Kafka's StripedReplicaPlacer.

Replicas are striped over the racks: the first partition goes to racks A, B and C, the next to B,
C and A, and within a rack every partition takes the broker after the last one taken. So racks are
used evenly before brokers are, and when a broker fails the others share its leaderships. The
layout is that of Kafka, with other starting points.

Manual assignments are validated here, too.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import cycle, islice
from typing import TypeVar

from barnabas.controller.context import default_directory
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.states import BrokerRegistration, PartitionRegistration, Replicas
from barnabas.wire.errors import ErrorCode, KafkaError

RandomBelow = Callable[[int], int]
T = TypeVar("T")


def place_replicas(
    brokers: Iterable[BrokerRegistration],
    partition_count: int,
    replication_factor: int,
    random_below: RandomBelow,
) -> list[Replicas]:
    """Returns the replicas of each partition, the preferred leader first.

    Fenced brokers get replicas only where the active ones of their rack are too few, and never
    the leadership; brokers that are shutting down get nothing.
    """
    usable = [broker for broker in brokers if not broker.in_controlled_shutdown]
    usable = [broker for broker in usable if not _is_cordoned(broker)]
    active_count = sum(not broker.fenced for broker in usable)
    if not active_count:
        raise _placement_error(replication_factor, "All brokers are currently fenced.")
    if replication_factor > len(usable):
        raise _placement_error(
            replication_factor,
            f"The target replication factor of {replication_factor} cannot be reached because only "
            f"{len(usable)} broker(s) are registered or some brokers have all their log "
            "directories cordoned.",
        )
    racks = _RackList(usable, random_below)
    placed = []
    for number in range(partition_count):
        if number and number % active_count == 0 and active_count > 1:
            # Every broker leads once: in the same order again, they would fail together.
            racks.shuffle()
        placed.append(racks.next(replication_factor))
    return placed


class _RackList:
    """The racks, and which of them is next."""

    def __init__(self, brokers: list[BrokerRegistration], random_below: RandomBelow) -> None:
        self._random_below = random_below
        by_rack: dict[str, list[BrokerRegistration]] = {}
        for broker in sorted(brokers, key=lambda broker: broker.broker_id):
            by_rack.setdefault(broker.rack or "", []).append(broker)
        self._racks = [_Rack(by_rack[name], random_below) for name in sorted(by_rack)]
        self._start = random_below(len(self._racks))

    def next(self, replication_factor: int) -> Replicas:
        """Returns the replicas of the next partition."""
        count = len(self._racks)
        in_order = [(self._start + step) % count for step in range(count)]
        self._start = (self._start + 1) % count
        available = [rack.in_order() for rack in self._racks]
        leading_rack = next(at for at in in_order if self._racks[at].has_active)
        replicas = [next(available[leading_rack])]
        # Every rack has one replica before any has a second; the leader's rack has its first.
        first_round = [at for at in in_order if at != leading_rack]
        for at in (*first_round, *islice(cycle(in_order), replication_factor * count)):
            if len(replicas) == replication_factor:
                break
            replicas += islice(available[at], 1)
        return tuple(replicas)

    def shuffle(self) -> None:
        _shuffle(self._racks, self._random_below)
        for rack in self._racks:
            rack.shuffle(self._random_below)


class _Rack:
    """The brokers of a rack: active and fenced ones rotate separately."""

    def __init__(self, brokers: list[BrokerRegistration], random_below: RandomBelow) -> None:
        self._active = _BrokerList([b.broker_id for b in brokers if not b.fenced], random_below)
        self._fenced = _BrokerList([b.broker_id for b in brokers if b.fenced], random_below)

    @property
    def has_active(self) -> bool:
        return bool(self._active.broker_ids)

    def in_order(self) -> Iterator[int]:
        """Yields every broker once; a list from which nothing is taken does not rotate."""
        yield from self._active.rotate()
        yield from self._fenced.rotate()

    def shuffle(self, random_below: RandomBelow) -> None:
        _shuffle(self._active.broker_ids, random_below)
        _shuffle(self._fenced.broker_ids, random_below)


class _BrokerList:
    """Brokers in rotation."""

    def __init__(self, broker_ids: list[int], random_below: RandomBelow) -> None:
        self.broker_ids = broker_ids
        self._start = random_below(len(broker_ids)) if broker_ids else 0

    def rotate(self) -> Iterator[int]:
        start, count = self._start, len(self.broker_ids)
        if count:
            self._start = (start + 1) % count
        for step in range(count):
            yield self.broker_ids[(start + step) % count]


def _shuffle(items: list[T], random_below: RandomBelow) -> None:
    for last in range(len(items) - 1, 0, -1):
        other = random_below(last + 1)
        items[last], items[other] = items[other], items[last]


def _is_cordoned(broker: BrokerRegistration) -> bool:
    """Whether every log directory is cordoned, so that the broker takes no new replicas."""
    cordoned = broker.cordoned_log_dirs or ()
    return bool(broker.log_dirs) and all(directory in cordoned for directory in broker.log_dirs)


def _placement_error(replication_factor: int, reason: str) -> KafkaError:
    return KafkaError(
        ErrorCode.INVALID_REPLICATION_FACTOR,
        f"Unable to replicate the partition {replication_factor} time(s): {reason}",
    )


def new_partition(index: int, replicas: Replicas, image: MetadataImage) -> PartitionRegistration:
    """Returns a partition with all active replicas in sync, led by the first of them."""
    brokers = image.brokers
    isr = tuple(r for r in replicas if (broker := brokers.get(r)) is not None and broker.active)
    if not isr:
        raise _invalid_assignment(
            "All brokers specified in the manual partition assignment for partition "
            f"{index} are fenced or in controlled shutdown."
        )
    return PartitionRegistration(
        replicas=replicas,
        isr=isr,
        leader=isr[0],
        leader_epoch=0,
        partition_epoch=0,
        directories=tuple(default_directory(brokers.get(replica)) for replica in replicas),
    )


def validate_manual_assignment(
    replicas: Sequence[int], image: MetadataImage, replication_factor: int | None
) -> Replicas:
    """Returns the replicas if the assignment is valid.

    Raises KafkaError INVALID_REPLICA_ASSIGNMENT unless the brokers exist, are distinct, and are as
    many as `replication_factor`, if that is given.
    """
    if not replicas:
        raise _invalid_assignment("The manual partition assignment includes an empty replica list.")
    for broker_id in sorted(replicas):
        if broker_id not in image.brokers:
            raise _invalid_assignment(
                f"The manual partition assignment includes broker {broker_id}, but no such broker "
                "is registered."
            )
        if replicas.count(broker_id) > 1:
            raise _invalid_assignment(
                f"The manual partition assignment includes the broker {broker_id} more than once."
            )
    if replication_factor is not None and len(replicas) != replication_factor:
        raise _invalid_assignment(
            f"The manual partition assignment includes a partition with {len(replicas)} "
            "replica(s), but this is not consistent with previous partitions, which have "
            f"{replication_factor} replica(s)."
        )
    return tuple(replicas)


def _invalid_assignment(reason: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, reason)
