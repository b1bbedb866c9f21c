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
    if partition.has_promised(next_offset, ALL_IN_SYNC):
        told(ErrorCode.NONE)
        return

    def is_promised(_: Hashable = None, __: int = 0) -> bool:
        return partition.has_promised(next_offset, ALL_IN_SYNC)

    def look_again(_: "asyncio.Future[bool]") -> None:
        if not partition.is_leader:
            told(partition.failure or ErrorCode.NOT_LEADER_OR_FOLLOWER)
        else:
            told(ErrorCode.NONE if is_promised() else ErrorCode.REQUEST_TIMED_OUT)

    parked = purgatory.park([partition], timeout_ms, is_promised, operation)
    parked.add_done_callback(look_again)
