"""What this room needs from the house around it."""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from barnabas.coordinator.records import CoordinatorRecord
from barnabas.metadata.delta import MetadataDelta
from barnabas.metadata.image import MetadataImage
from barnabas.wire.errors import KafkaError

OnCommitted = Callable[[KafkaError | None], None]
"""Told once: None when the write is committed, else why it is not known to be."""


class TransactionMarker(NamedTuple):
    """Who ended which transaction, and how."""

    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    committed: bool
    transaction_version: int
    """From version 2 on the epoch is a new one, which no batch has been written with (KIP-890)."""


class PartitionLog(Protocol):
    """A partition of an internal topic, as its coordinator reads and writes it."""

    @property
    def start_offset(self) -> int: ...

    @property
    def end_offset(self) -> int: ...

    def read(self, offset: int, max_bytes: int) -> bytes:
        """Whole batches from `offset` on, at least one; nothing at the end of the log."""

    def append(self, batch: bytearray) -> int:
        """Write as the leader; the offset after it. KafkaError where that cannot be."""

    def append_marker(self, marker: TransactionMarker) -> int:
        """Write the end of a transaction; the offset after it. KafkaError where refused."""

    def when_committed(self, next_offset: int, timeout_ms: int, committed: OnCommitted) -> None:
        """Call `committed` once all before `next_offset` is: at once, if it is."""


class TimerService(Protocol):
    """Calls back after a delay."""

    def call_after(self, delay_ms: int, callback: Callable[[], object]) -> Any: ...

    def cancel(self, alarm: Any) -> None: ...


class ResolvedSettings(Protocol):
    """Settings in force, as the broker's Resolver finds them."""

    def broker(self, name: str) -> Any: ...


class CoordinatorState(Protocol):
    """A state machine kept in one partition of an internal topic.

    It changes only by `replay` of what is in the log; what it keeps besides (sessions, who waits
    for whom) it can do without after a failover.
    """

    def replay(self, record: CoordinatorRecord, producer_id: int) -> None:
        """Take in a record. With a producer id it is pending until that producer's transaction
        ends; -1 means none."""

    def replay_end(self, producer_id: int, committed: bool) -> None:
        """The producer's transaction ended: what was pending counts, or never was."""

    def loaded(self) -> None:
        """All there is has been replayed: from now on requests come and time counts."""

    def unloaded(self) -> None:
        """Another leads: let go of whoever waits for an answer."""

    def follow(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """The metadata changed."""
