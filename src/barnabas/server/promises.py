"""Waiting until a write is promised: until all replicas in sync have it."""

import asyncio
from collections.abc import Callable, Hashable

from barnabas.replication import Partition
from barnabas.replication.partition import ALL_IN_SYNC
from barnabas.server.purgatory import Purgatory
from barnabas.wire.errors import ErrorCode


def when_promised(
    partition: Partition,
    next_offset: int,
    told: Callable[[ErrorCode], None],
    *,
    purgatory: Purgatory,
    timeout_ms: int,
    operation: str,
) -> None:
    """Tell NONE once all before `next_offset` is promised: at once, if it is. If that is not so in
    time, or the partition has another leader, tell that."""
    outcome = partition.outcome(next_offset, ALL_IN_SYNC)
    if outcome is not None:
        told(outcome)
        return

    def is_decided(_: Hashable, __: int) -> bool:
        return partition.outcome(next_offset, ALL_IN_SYNC) is not None

    def tell(_: "asyncio.Future[bool]") -> None:
        outcome = partition.outcome(next_offset, ALL_IN_SYNC)
        told(ErrorCode.REQUEST_TIMED_OUT if outcome is None else outcome)

    parked = purgatory.park([partition], timeout_ms, is_decided, operation)
    parked.add_done_callback(tell)
