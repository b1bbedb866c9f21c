"""What the coordinators need from the rest of the broker, as protocols that `node` implements."""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from barnabas.wire.errors import KafkaError

OnCommitted = Callable[[KafkaError | None], None]
"""Called once: with None when the write is committed, else with the reason why that is unknown."""


class TransactionMarker(NamedTuple):
    """The end of a transaction, as it is written into each partition of the transaction."""

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
        """Returns whole batches from `offset` on, at least one; nothing at the end of the log."""

    def append(self, batch: bytearray) -> int:
        """Appends as the leader and returns the next offset. Raises KafkaError if it cannot."""

    def append_marker(self, marker: TransactionMarker) -> int:
        """Appends the end of a transaction and returns the next offset. Raises KafkaError if it
        cannot."""

    @property
    def commits_at_once(self) -> bool:
        """Whether everything is committed, and what is appended next is so at once."""

    def is_committed(self, next_offset: int) -> bool:
        """Returns whether everything before `next_offset` is committed."""

    def when_committed(self, next_offset: int, timeout_ms: int, committed: OnCommitted) -> None:
        """Calls `committed` once everything before `next_offset` is: at once, if it is."""


class TimerService(Protocol):
    """Calls back after a delay."""

    def call_after(self, delay_ms: int, callback: Callable[[], object]) -> Any: ...

    def restart(self, task: Any, delay_ms: int) -> Any:
        """Calls the callback of a task that is pending in `delay_ms` instead. Returns the task that
        replaces it, mostly itself."""

    def cancel(self, task: Any) -> None: ...


class ResolvedSettings(Protocol):
    """The settings in force, as the broker's Resolver returns them."""

    def broker(self, name: str) -> Any: ...
