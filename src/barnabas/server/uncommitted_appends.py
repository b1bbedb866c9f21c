"""The appends of one Produce request that its replicas do not have yet, or the disk."""

from collections.abc import Hashable
from typing import Generic, TypeVar

from barnabas.replication import Partition
from barnabas.server.purgatory import DelayedOperation, Purgatory
from barnabas.wire.errors import ErrorCode

P = TypeVar("P")
"""What stands for an append: its response, or its number in the request."""


class UncommittedAppends(Generic[P]):
    """Appends that wait until they are committed; `errors` has those that were not."""

    __slots__ = ("_acks", "errors", "partitions")

    def __init__(self, acks: int) -> None:
        self.partitions: dict[Partition, tuple[int, list[P]]] = {}
        """The offset to be committed, and the appends that wait for it."""
        self.errors: list[tuple[P, ErrorCode]] = []
        self._acks = acks

    def add(self, partition: Partition, next_offset: int, append: P) -> None:
        """Waits for all records before `next_offset`."""
        waiting: list[P] = self.partitions[partition][1] if partition in self.partitions else []
        waiting.append(append)  # a request may have thousands of batches for one partition
        self.partitions[partition] = next_offset, waiting

    def wait(self, purgatory: Purgatory, timeout_ms: int) -> DelayedOperation:
        """Returns an operation that completes when all of them have an outcome."""
        return purgatory.delay(self.partitions, timeout_ms, self.on_change, "Produce")

    def on_change(self, partition: Hashable, _: int) -> bool:
        """Returns whether all partitions have an outcome, after a change of this one."""
        assert isinstance(partition, Partition)
        waiting = self.partitions.get(partition)
        if waiting is not None:
            next_offset, appends = waiting
            outcome = partition.commit_result(next_offset, self._acks)
            if outcome is not None:
                del self.partitions[partition]
                self._set_outcome(appends, outcome)
        return not self.partitions

    def recheck(self) -> None:
        """A later append may have failed the log directory of an earlier one before it waited."""
        for partition in tuple(self.partitions):
            self.on_change(partition, 0)

    def expire(self) -> None:
        """Fails the appends that were not committed before the timeout."""
        for _, appends in self.partitions.values():
            self._set_outcome(appends, ErrorCode.REQUEST_TIMED_OUT)

    def _set_outcome(self, appends: list[P], outcome: ErrorCode) -> None:
        if outcome is not ErrorCode.NONE:
            self.errors += [(append, outcome) for append in appends]
