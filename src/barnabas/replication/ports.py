"""What a partition needs from the house around it."""

from collections.abc import Hashable
from typing import TYPE_CHECKING, Protocol

from barnabas.log import LogDirectory
from barnabas.metadata.states import BrokerRegistration

if TYPE_CHECKING:
    from barnabas.replication.leading import LeadingReplica
    from barnabas.replication.replica import Replica


class Waiting(Protocol):
    """The requests that wait for a partition to move, parked elsewhere.

    Who waits for something to count watches the partition, who waits for the log to grow, that
    is a follower, watches the log.
    """

    def poke(self, key: Hashable, readable_bytes: int = 0) -> None:
        """It moved on, or is no longer what it was; those that have seen enough go."""


class Caretaker(Protocol):
    """Who looks after the partitions of a broker: their disks, and their place in the cluster."""

    @property
    def replica_lag_max_ms(self) -> int:
        """How long a follower may lag before it is no longer in sync."""

    def flush(self, partition: "Replica") -> None:
        """Bring its log to the disk, off the loop, and poke it when that is done."""

    def lose(self, directory: LogDirectory, failure: OSError) -> None:
        """The disk refused."""

    def broker(self, broker_id: int) -> BrokerRegistration | None:
        """A broker of the cluster, as the metadata has it."""

    def propose(self, partition: "LeadingReplica") -> None:
        """Take to the controller what the partition proposes of who is in sync."""


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
