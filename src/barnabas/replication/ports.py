"""What a partition needs from the broker around it."""

from collections.abc import Hashable
from typing import TYPE_CHECKING, Protocol

from barnabas.log import LogDirectory
from barnabas.metadata.states import BrokerRegistration

if TYPE_CHECKING:
    from barnabas.replication.partition import Partition


class DelayedOperations(Protocol):
    """The purgatory: requests that wait for a partition to change.

    A request that waits for records to be committed watches the partition. A follower's fetch,
    which waits for the log to grow, watches the log.
    """

    def notify(self, key: Hashable, readable_bytes: int = 0) -> None:
        """The key changed: completes the requests that have waited long enough for it."""


class PartitionHost(Protocol):
    """The broker that hosts a partition: its disks, and its view of the cluster."""

    @property
    def replica_lag_max_ms(self) -> int:
        """How long a follower may lag before it is out of sync."""

    def request_flush(self, partition: "Partition") -> None:
        """Flushes the partition's log off the loop, then calls `Partition.on_flushed`."""

    def handle_log_dir_failure(self, directory: LogDirectory, failure: OSError) -> None:
        """The disk of a log directory failed."""

    def broker(self, broker_id: int) -> BrokerRegistration | None:
        """Returns a broker of the cluster, as the metadata has it."""

    def submit_isr_change(self, partition: "Partition") -> None:
        """Sends the partition's pending ISR change to the controller."""


class TransactionMarker(Protocol):
    """The end of a transaction, and the coordinator that decided it."""

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
