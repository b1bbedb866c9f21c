"""Brokers as far as the sink's protocol meets them: transactions by their ids, and decisions.

They keep transactions (by id: producer id, epoch, state, rows) and a group's decision as Kafka
does, in either flow. Epochs run out soon, and another producer id follows.
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
"""A batch, the run that has made it, and a row of it."""


class Death(Exception):  # noqa: N818 - not an error: it is what the simulation is about
    """Of whoever makes a request."""


class Fenced(Exception):  # noqa: N818
    """By who has taken over."""


class Forgotten(Exception):  # noqa: N818
    """How a transaction has ended: nobody can tell."""


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
    """Who has had the last one that has ended."""


@dataclass(slots=True)
class Brokers:
    ends_with_new_epoch: bool
    """The new flow."""
    ids: dict[str, Transactional] = field(default_factory=dict)
    pieces: list[str] = field(default_factory=list)
    decided: set[int] = field(default_factory=set)
    """Batches that ever were."""
    driver_epoch: int = 0
    log: list[Row] = field(default_factory=list)
    """What readers of what is committed see."""
    _producer_ids: "count[int]" = field(default_factory=count)

    @property
    def last(self) -> CommitDecision | None:
        return decode(PREFIX, self.pieces) if self.pieces else None

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
        is_its = (it.producer_id, it.epoch) == (transaction.producer_id, transaction.epoch)
        return is_its and it.state is State.OPEN

    def end(self, transaction: PreparedTransaction, committed: bool) -> bool:
        """Whether it has ended so, by this or before."""
        it = self.ids[transaction.transactional_id]
        if self.is_open(transaction):
            self._end(it, committed)
            if self.ends_with_new_epoch:
                self._bump(it)
            return True
        if not committed:
            return True  # there is nothing left to abort
        if it.ended != (transaction.producer_id, transaction.epoch):
            raise Forgotten
        return it.state is State.COMMITTED

    def fence(self, transaction: PreparedTransaction) -> None:
        it = self.ids[transaction.transactional_id]
        if self.ends_with_new_epoch:
            self.end(transaction, committed=False)
        elif it.state is State.OPEN:
            self.time_out(transaction.transactional_id)  # whosever it is by now
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


class Fate:
    """When whoever makes a request dies: before it is heard, or before it is answered."""

    def __init__(self, seed: random.Random, likelihood: float) -> None:
        self._seed = seed
        self.likelihood = likelihood

    def strikes(self) -> bool:
        return self._seed.random() < self.likelihood


class SimulatedLedger:
    """`protocol.Ledger`, of one driver or task. Something else may happen before each request."""

    def __init__(
        self, brokers: Brokers, fate: Fate, meanwhile: Callable[[], None] = lambda: None
    ) -> None:
        self._brokers = brokers
        self._fate = fate
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

    def hand_over(self) -> None:
        self._epoch = None

    def decide(self, decision: CommitDecision) -> None:
        self._step()
        if self._epoch != self._brokers.driver_epoch:
            raise Fenced
        pieces = encode(PREFIX, decision)
        self._brokers.pieces[: len(pieces)] = pieces
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
        return [each for each in transactions if not self._brokers.is_open(each)]

    def open_transactions(self) -> list[PreparedTransaction]:
        self._step()
        return self._brokers.open_transactions()

    def fence(self, transactions: Sequence[PreparedTransaction]) -> None:
        for transaction in transactions:
            self._step()
            self._brokers.fence(transaction)

    def _step(self) -> None:
        self._meanwhile()
        if self._fate.strikes():
            self._epoch = None  # whether it was heard is not known: as after `hand_over`
            raise Death
