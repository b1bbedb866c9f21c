"""The operations of a client library that the transaction scenarios use."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.conformance.clients.client import SentRecord
from tests.conformance.clients.group_client import Committed, GroupClient, PartitionKey

TIMEOUT_MS = 60_000


class FencedError(Exception):
    """The broker fenced a producer because a newer one has its transactional id."""


class TransactionalProducer(ABC):
    """A producer with a transactional id, initialized."""

    @abstractmethod
    def begin(self) -> None: ...

    @abstractmethod
    def send(self, topic: str, records: Sequence[SentRecord]) -> None:
        """Sends all records in the transaction and waits until they are written."""

    @abstractmethod
    def send_offsets(self, offsets: Mapping[PartitionKey, Committed], group_metadata: Any) -> None:
        """Commits offsets in the transaction, as the member with this group metadata."""

    @abstractmethod
    def commit(self) -> None: ...

    @abstractmethod
    def abort(self) -> None: ...

    @abstractmethod
    def close(self) -> None:
        """Closes the producer; an open transaction stays open."""


class TransactionClient(GroupClient):
    """A library with transactional producers."""

    @abstractmethod
    def transactional_producer(
        self, transactional_id: str, *, timeout_ms: int = TIMEOUT_MS
    ) -> TransactionalProducer: ...


@dataclass(slots=True, frozen=True)
class Transaction:
    """A transaction as its coordinator describes it."""

    state: str
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    topic_partitions: frozenset[PartitionKey]


class TransactionAdminClient(TransactionClient):
    """A library whose admin client describes transactions."""

    @abstractmethod
    def transactions(self) -> dict[str, str]:
        """Returns the state of every transactional id."""

    @abstractmethod
    def describe_transaction(self, transactional_id: str) -> Transaction: ...

    @abstractmethod
    def open_producers(self, topic_partition: PartitionKey) -> dict[int, int]:
        """Returns the start offset of each open transaction of a partition, by producer id."""
