"""A simulation of brokers for the sink's protocol: transactions by id, and decisions.

It has transactions (by id: producer id, epoch, state, rows) and a group's decision as Kafka has,
with transactions V1 or V2. Epochs are exhausted soon, and a new producer id follows.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from itertools import count

from barnabas.client.values import PreparedTransaction
from barnabas.spark.sink.commit_decision import CommitDecision, decode, encode

PREFIX = "query"
LAST_EPOCH = 6
Row = tuple[int, int, int]
"""A batch, the run that wrote it, and a row of it."""


class Death(Exception):  # noqa: N818 - not an error: it is what the simulation is about
    """The process that sends a request dies."""


class Fenced(Exception):  # noqa: N818
    """A newer driver has fenced this one."""


class Forgotten(Exception):  # noqa: N818
    """The brokers no longer know how a transaction ended."""


class State(Enum):
    EMPTY = auto()
    OPEN = auto()
    COMMITTED = auto()
    ABORTED = auto()


@dataclass(slots=True)
class Transactional:
    producer_id: int
    epoch: int = -1
    state: State = State.EMPTY
    rows: list[Row] = field(default_factory=list)
    ended: tuple[int, int] | None = None
    """Producer id and epoch of the last transaction that ended."""


@dataclass(slots=True)
class Brokers:
    ends_with_new_epoch: bool
    """Transactions V2 (KIP-890)."""
    ids: dict[str, Transactional] = field(default_factory=dict)
    chunks: list[str] = field(default_factory=list)
    decided: set[int] = field(default_factory=set)
    """All batches that were ever decided."""
    driver_epoch: int = 0
    log: list[Row] = field(default_factory=list)
    """The committed rows, as readers see them."""
    _producer_ids: "count[int]" = field(default_factory=count)

    @property
    def last(self) -> CommitDecision | None:
        return decode(PREFIX, self.chunks) if self.chunks else None

    def init(self, transactional_id: str) -> PreparedTransaction:
        it = self.ids.get(transactional_id)
        if it is None:
            it = self.ids[transactional_id] = Transactional(next(self._producer_ids))
        if it.state is State.OPEN:
            self._end(it, committed=False)
        self._bump(it)
        it.state = State.EMPTY
        it.ended = None
        return PreparedTransaction(transactional_id, it.producer_id, it.epoch)

    def write(self, transaction: PreparedTransaction, rows: Sequence[Row]) -> None:
        it = self.ids[transaction.transactional_id]
        if (it.producer_id, it.epoch) != (transaction.producer_id, transaction.epoch):
            raise Fenced
        it.state = State.OPEN
        it.rows.extend(rows)

    def is_open(self, transaction: PreparedTransaction) -> bool:
        it = self.ids[transaction.transactional_id]
        is_same = (it.producer_id, it.epoch) == (transaction.producer_id, transaction.epoch)
        return is_same and it.state is State.OPEN

    def end(self, transaction: PreparedTransaction, committed: bool) -> bool:
        """Returns whether it has ended so, now or before."""
        it = self.ids[transaction.transactional_id]
        if self.is_open(transaction):
            self._end(it, committed)
            if self.ends_with_new_epoch:
                self._bump(it)
            return True
        if not committed:
            return True  # it is aborted already
        if it.ended != (transaction.producer_id, transaction.epoch):
            raise Forgotten
        return it.state is State.COMMITTED

    def fence(self, transaction: PreparedTransaction) -> None:
        it = self.ids[transaction.transactional_id]
        if self.ends_with_new_epoch:
            self.end(transaction, committed=False)
        elif it.state is State.OPEN:
            self.time_out(transaction.transactional_id)  # also if it is another transaction by now
        elif (it.producer_id, it.epoch) == (transaction.producer_id, transaction.epoch):
            self.init(transaction.transactional_id)

    def time_out(self, transactional_id: str) -> None:
        it = self.ids[transactional_id]
        self._end(it, committed=False)
        self._bump(it)

    def open_transactions(self) -> list[PreparedTransaction]:
        return [
            PreparedTransaction(name, it.producer_id, it.epoch)
            for name, it in self.ids.items()
            if it.state is State.OPEN
        ]

    def _end(self, it: Transactional, committed: bool) -> None:
        if committed:
            self.log.extend(it.rows)
        it.rows.clear()
        it.state = State.COMMITTED if committed else State.ABORTED
        it.ended = it.producer_id, it.epoch

    def _bump(self, it: Transactional) -> None:
        if it.epoch < LAST_EPOCH:
            it.epoch += 1
        else:
            it.producer_id, it.epoch = next(self._producer_ids), 0


class FailureInjector:
    """When the sender of a request dies: before the broker gets it, or before the response."""

    def __init__(self, rng: random.Random, likelihood: float) -> None:
        self._rng = rng
        self.likelihood = likelihood

    def fails(self) -> bool:
        return self._rng.random() < self.likelihood


class SimulatedTransactionLog:
    """A `protocol.TransactionLog` of one driver or task. `meanwhile` runs before each request."""

    def __init__(
        self,
        brokers: Brokers,
        failures: FailureInjector,
        meanwhile: Callable[[], None] = lambda: None,
    ) -> None:
        self._brokers = brokers
        self._failures = failures
        self._meanwhile = meanwhile
        self._epoch: int | None = None

    def read(self) -> CommitDecision | None:
        self._step()
        return self._brokers.last

    def fence_other_drivers(self) -> CommitDecision | None:
        if self._epoch is None:
            self._step()
            self._brokers.driver_epoch += 1
            self._epoch = self._brokers.driver_epoch
        return self.read()

    def reset(self) -> None:
        self._epoch = None

    def decide(self, decision: CommitDecision) -> None:
        self._step()
        if self._epoch != self._brokers.driver_epoch:
            raise Fenced
        chunks = encode(PREFIX, decision)
        self._brokers.chunks[: len(chunks)] = chunks
        self._brokers.decided.add(decision.batch)
        self._step()

    def complete(
        self, transactions: Sequence[PreparedTransaction], *, committed: bool
    ) -> list[PreparedTransaction]:
        lost = []
        for transaction in transactions:
            self._step()
            if not self._brokers.end(transaction, committed):
                lost.append(transaction)
            self._step()
        return lost

    def find_ended(self, transactions: Sequence[PreparedTransaction]) -> list[PreparedTransaction]:
        self._step()
        return [it for it in transactions if not self._brokers.is_open(it)]

    def open_transactions(self) -> list[PreparedTransaction]:
        self._step()
        return self._brokers.open_transactions()

    def fence(self, transactions: Sequence[PreparedTransaction]) -> None:
        for transaction in transactions:
            self._step()
            self._brokers.fence(transaction)

    def _step(self) -> None:
        self._meanwhile()
        if self._failures.fails():
            self._epoch = None  # the outcome is unknown, as after `reset`
            raise Death
