"""What a partition needs from the house around it."""

from collections.abc import Hashable
from typing import TYPE_CHECKING, Protocol

from barnabas.log import LogDirectory

if TYPE_CHECKING:
    from barnabas.replication.replica import Replica


class Waiting(Protocol):
    """The requests that wait for a partition to move, parked elsewhere."""

    def poke(self, key: Hashable, readable_bytes: int = 0) -> None:
        """The partition moved on; those that have seen enough go."""

    def wake(self, key: Hashable) -> None:
        """The partition is no longer what it was; everybody looks again."""


class Caretaker(Protocol):
    """Who looks after a partition's disk: flushes its log, and takes note when it fails."""

    def flush(self, partition: "Replica") -> None:
        """Bring its log to the disk, off the loop, and poke it when that is done."""

    def lose(self, directory: LogDirectory, failure: OSError) -> None:
        """The disk refused."""


class Marker(Protocol):
    """How a transaction ended, and who says so."""

    @property
    def producer_id(self) -> int: ...

    @property
    def producer_epoch(self) -> int: ...

    @property
    def coordinator_epoch(self) -> int: ...

    @property
    def committed(self) -> bool: ...

    @property
    def transaction_version(self) -> int: ...
