"""What the transaction scenarios ask of a client library."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.conformance.clients.client import Sent
from tests.conformance.clients.group_client import Committed, GroupClient, Place

TIMEOUT_MS = 60_000


class FencedError(Exception):
    """The broker refused a producer because a newer one has its transactional id."""


class Transactional(ABC):
    """A producer with a transactional id, ready to begin."""

    @abstractmethod
    def begin(self) -> None: ...

    @abstractmethod
    def send(self, topic: str, records: Sequence[Sent]) -> None:
        """Send all in the transaction and wait until they are written."""

    @abstractmethod
    def send_offsets(self, offsets: Mapping[Place, Committed], identity: Any) -> None:
        """Commit as this member of a group, in the transaction."""

    @abstractmethod
    def commit(self) -> None: ...

    @abstractmethod
    def abort(self) -> None: ...

    @abstractmethod
    def close(self) -> None:
        """Let go of it as it is; an open transaction stays open."""


class TransactionClient(GroupClient):
    """A library whose producers know transactions."""

    @abstractmethod
    def transactional(
        self, transactional_id: str, *, timeout_ms: int = TIMEOUT_MS
    ) -> Transactional: ...


@dataclass(slots=True, frozen=True)
class Transaction:
    """A transaction as its coordinator describes it."""

    state: str
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    places: frozenset[Place]


class DescribesTransactions(TransactionClient):
    """A library whose admin client sees transactions."""

    @abstractmethod
    def transactions(self) -> dict[str, str]:
        """Every transactional id with the state it is in."""

    @abstractmethod
    def describe_transaction(self, transactional_id: str) -> Transaction: ...

    @abstractmethod
    def open_producers(self, place: Place) -> dict[int, int]:
        """By producer id, where its open transaction starts in a partition."""
