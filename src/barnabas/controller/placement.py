"""On which brokers the replicas of new partitions go."""

from collections.abc import Callable, Iterable

from barnabas.metadata.states import BrokerState, Replicas
from barnabas.wire.errors import ErrorCode, KafkaError


def place(
    brokers: Iterable[BrokerState],
    partition_count: int,
    replication_factor: int,
    random_below: Callable[[int], int],
) -> list[Replicas]:
    """The replicas of each partition, its first leader in front.

    Leaders and followers go round the active brokers, starting with any of them; fenced brokers
    get replicas only where the active ones are too few, and never the leadership.
    """
    usable = [broker for broker in brokers if not _is_full(broker)]
    active = sorted(broker.broker_id for broker in usable if broker.active)
    resting = sorted(
        broker.broker_id for broker in usable if broker.fenced and not broker.in_controlled_shutdown
    )
    if not active:
        raise _unreachable(replication_factor, "all brokers are fenced or shutting down")
    if replication_factor > len(active) + len(resting):
        raise _unreachable(
            replication_factor, f"only {len(active) + len(resting)} broker(s) can take replicas"
        )
    start = random_below(len(active))
    return [
        (*_around(active, start + number), *_around(resting, start + number))[:replication_factor]
        for number in range(partition_count)
    ]


def _around(broker_ids: list[int], start: int) -> list[int]:
    if not broker_ids:
        return broker_ids
    turn = start % len(broker_ids)
    return broker_ids[turn:] + broker_ids[:turn]


def _is_full(broker: BrokerState) -> bool:
    """Whether every log directory is cordoned: it keeps what it has and takes nothing new."""
    cordoned = broker.cordoned_log_dirs or ()
    return bool(broker.log_dirs) and all(directory in cordoned for directory in broker.log_dirs)


def _unreachable(replication_factor: int, reason: str) -> KafkaError:
    return KafkaError(
        ErrorCode.INVALID_REPLICATION_FACTOR,
        f"Unable to replicate the partition {replication_factor} time(s): {reason}.",
    )
