"""Brokers and Spark as far as the sink's protocol meets them, in one process, by a seed.

The broker keeps transactions (by id: producer id, epoch, state, rows) and a group's decision as
Kafka does, in either flow. Spark runs micro-batches as it does: tasks, some of them tried twice
or beside each other, then `commit`, and `abort` where that fails; and after the death of the
driver the last batch again. Anything may end before or after any request: `Death`.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto

from barnabas.client.values import PreparedTransaction
from barnabas.spark.sink import names, protocol
from barnabas.spark.sink.decision import Decision, Written, decode, encode
from barnabas.spark.sink.protocol import LostRowsError, Report

PREFIX = "query"
Row = tuple[int, int]
"""A batch, and a row of it."""


class Death(Exception):  # noqa: N818 - not an error: it is what the simulation is about
    """Of whoever makes a request."""


class Fenced(Exception):  # noqa: N818
    """By who has taken over."""


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


@dataclass(slots=True)
class Broker:
    ends_with_new_epoch: bool
    """The new flow."""
    ids: dict[str, Transactional] = field(default_factory=dict)
    pieces: list[str] = field(default_factory=list)
    decided: set[int] = field(default_factory=set)
    """Batches that ever were."""
    driver_epoch: int = 0
    log: list[Row] = field(default_factory=list)
    """What readers of what is committed see."""

    def init(self, transactional_id: str) -> tuple[int, int]:
        it = self.ids.setdefault(transactional_id, Transactional(len(self.ids)))
        if it.state is State.OPEN:
            self._end(it, committed=False)
        it.epoch += 1
        it.state = State.EMPTY
        return it.producer_id, it.epoch

    def write(self, transaction: PreparedTransaction, rows: Sequence[Row]) -> None:
        it = self.ids[transaction.transactional_id]
        if it.epoch != transaction.epoch:
            raise Fenced
        it.state = State.OPEN
        it.rows.extend(rows)

    def end(self, transaction: PreparedTransaction, committed: bool) -> bool:
        """Whether it has ended so, by this or before."""
        it = self.ids[transaction.transactional_id]
        wanted = State.COMMITTED if committed else State.ABORTED
        if it.epoch == transaction.epoch and it.state is State.OPEN:
            self._end(it, committed)
            it.epoch += self.ends_with_new_epoch
            return True
        is_same = it.epoch == transaction.epoch + self.ends_with_new_epoch
        return (is_same and it.state is wanted) or not committed

    def time_out(self, transactional_id: str) -> None:
        it = self.ids[transactional_id]
        if it.state is State.OPEN:
            self._end(it, committed=False)
            it.epoch += 1

    def open_ids(self) -> list[str]:
        return [name for name, it in self.ids.items() if it.state is State.OPEN]

    def _end(self, it: Transactional, committed: bool) -> None:
        if committed:
            self.log.extend(it.rows)
        it.rows.clear()
        it.state = State.COMMITTED if committed else State.ABORTED


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
        self, broker: Broker, fate: Fate, meanwhile: Callable[[], None] = lambda: None
    ) -> None:
        self._broker = broker
        self._fate = fate
        self._meanwhile = meanwhile
        self._epoch = -1

    def read(self) -> Decision | None:
        self._step()
        return decode(PREFIX, self._broker.pieces) if self._broker.pieces else None

    def take_over(self) -> Decision | None:
        self._step()
        self._broker.driver_epoch += 1
        self._epoch = self._broker.driver_epoch
        return self.read()

    def decide(self, decision: Decision) -> None:
        self._step()
        if self._epoch != self._broker.driver_epoch:
            raise Fenced
        pieces = encode(PREFIX, decision)
        self._broker.pieces[: len(pieces)] = pieces
        self._broker.decided.add(decision.batch)
        self._step()

    def complete(
        self, transactions: Sequence[PreparedTransaction], *, committed: bool
    ) -> list[PreparedTransaction]:
        lost = []
        for transaction in transactions:
            self._step()
            if not self._broker.end(transaction, committed):
                lost.append(transaction)
            self._step()
        return lost

    def ended(self, transactions: Sequence[PreparedTransaction]) -> list[PreparedTransaction]:
        self._step()
        ids = self._broker.ids
        return [
            each
            for each in transactions
            if (it := ids[each.transactional_id]).state is not State.OPEN or it.epoch != each.epoch
        ]

    def open_ids(self, longer_than_ms: int) -> list[str]:
        self._step()
        return self._broker.open_ids()

    def fence(self, transactional_ids: Sequence[str]) -> None:
        for transactional_id in transactional_ids:
            self._step()
            self._broker.init(transactional_id)

    def _step(self) -> None:
        self._meanwhile()
        if self._fate.strikes():
            raise Death


@dataclass(slots=True)
class Worker:
    """A Python worker process, with the ids that it uses again, as `pool.Pool` does."""

    name: str
    lanes: dict[str, int] = field(default_factory=dict)
    met: dict[int, Decision | None] = field(default_factory=dict)

    def lane(self, batch: int, last: Decision | None) -> str:
        listed = () if last is None else last.written
        decided = {each.transaction.transactional_id for each in listed}
        free = [it for it, used in self.lanes.items() if used < batch and it not in decided]
        chosen = free[0] if free else names.of_task(PREFIX, self.name, len(self.lanes))
        self.lanes[chosen] = batch
        return chosen


class Spark:
    """A query over batches of rows, restarted from its checkpoint until all are committed."""

    finish_last = False
    has_zombies = True
    has_timeouts = True

    def __init__(self, seed: int) -> None:
        self.seed = random.Random(seed)
        self.broker = Broker(ends_with_new_epoch=self.seed.random() < 0.5)
        self.fate = Fate(self.seed, 0.0)
        self.batches = self.seed.randint(2, 5)
        self.tasks = self.seed.randint(1, 3)
        self.committed = -1  # the checkpoint's commit log
        self.run = 0
        self.workers: list[Worker] = []
        self.zombies: list[tuple[int, list[Report]]] = []
        """Drivers that are thought dead: what they were about to commit."""
        self.has_timed_out = False

    @property
    def expected(self) -> list[Row]:
        return sorted((b, r) for b in range(self.batches) for r in self._rows_of_all(b))

    def play(self) -> None:
        deadliness = self.seed.choice([0.01, 0.05, 0.15])
        runs = self.seed.randint(1, 12)
        while self.committed < self.batches - 1:
            self.run += 1
            assert self.run < 100, "it does not get on"
            self.fate.likelihood = deadliness if self.run <= runs else 0.0
            try:
                self._run()
            except (Death, Fenced):
                self._between_runs()
            except LostRowsError:
                assert self.has_timed_out, "nothing is lost unless it has timed out"
        self.fate.likelihood = 0.0
        for batch, reports in self.zombies:
            self._zombie_commits(batch, reports)

    def _run(self) -> None:
        for batch in range(self.committed + 1, self.batches):
            self._batch(batch)
            self._step()
            self.committed = batch

    def _batch(self, batch: int) -> None:
        reports: list[Report] = []
        ledger = SimulatedLedger(self.broker, self.fate, self._zombie_may_commit)
        try:
            reports = [self._task(batch, task) for task in range(self.tasks)]
            if self.has_zombies and self.seed.random() < 0.1 and self.fate.likelihood:
                self.zombies.append((batch, reports))  # it comes to life again later
                raise Death
            protocol.commit(ledger, batch, reports, finish_last=self.finish_last)
        except LostRowsError:
            protocol.abort(SimulatedLedger(self.broker, self.fate), batch, reports)
            raise
        except Death:
            if self.seed.random() < 0.5:  # it was a request that failed, not the driver
                protocol.abort(SimulatedLedger(self.broker, self.fate), batch, reports)
            raise
        protocol.sweep(ledger, reports, now_s=1.0)

    def _task(self, batch: int, task: int) -> Report:
        for attempt in range(20):
            worker = self._worker()
            try:
                report = self._attempt(worker, batch, task, attempt)
            except Death:
                self.workers = [it for it in self.workers if it is not worker]
                continue
            if self.seed.random() < 0.1:
                continue  # another attempt was quicker; this one stays as it is
            return report
        raise Death

    def _attempt(self, worker: Worker, batch: int, task: int, attempt: int) -> Report:
        ledger = SimulatedLedger(self.broker, self.fate)
        if self.run not in worker.met:
            worker.met[self.run] = ledger.read()
        last = worker.met[self.run]
        plan = protocol.begin_task(ledger, last, batch, task)
        assert plan.replaces is None or self.has_timed_out, "nothing else makes a decision void"
        is_decided = last is not None and last.batch >= batch
        rows = [(batch, row) for row in self._rows(batch, task)]
        written = None
        if plan.writes and rows:
            name = worker.lane(batch, last)
            self._step()
            prepared = PreparedTransaction(name, *self.broker.init(name))
            for row in rows:
                self._step()
                self.broker.write(prepared, [row])
            written = Written(task, len(rows), prepared)
        return Report(task, attempt, 0.0, is_decided, written, plan.replaces)

    def _worker(self) -> Worker:
        if not self.workers or self.seed.random() < 0.2:
            self.workers.append(Worker(f"{self.seed.getrandbits(64):016x}"))
        return self.seed.choice(self.workers)

    def _between_runs(self) -> None:
        if self.seed.random() < 0.7:
            self.workers.clear()  # they die with their driver, unless it was only stopped
        if self.has_timeouts and self.seed.random() < 0.2:  # it took long to start again
            for name in self.broker.open_ids():
                if self.seed.random() < 0.7:
                    self.broker.time_out(name)
                    self.has_timed_out = True

    def _zombie_may_commit(self) -> None:
        if self.zombies and self.seed.random() < 0.1:
            self._zombie_commits(*self.zombies.pop())

    def _zombie_commits(self, batch: int, reports: list[Report]) -> None:
        try:
            ledger = SimulatedLedger(self.broker, self.fate)
            protocol.commit(ledger, batch, reports, finish_last=False)
        except (Death, Fenced, LostRowsError):
            return

    def _step(self) -> None:
        if self.fate.strikes():
            raise Death

    def _rows(self, batch: int, task: int) -> list[int]:
        return [task * 10 + row for row in range((batch + task) % 3)]

    def _rows_of_all(self, batch: int) -> list[int]:
        return [row for task in range(self.tasks) for row in self._rows(batch, task)]


class Jobs(Spark):
    """Saves of one application: one that fails is repeated, or left for the next version.

    What was decided then is left at that until the next version's save, in workers that may be
    the same. Nobody else saves meanwhile, which is asked of users.
    """

    finish_last = True
    has_zombies = False
    has_timeouts = False

    @property
    def expected(self) -> list[Row]:
        return sorted((b, r) for b in self.broker.decided for r in self._rows_of_all(b))

    def play(self) -> None:
        deadliness = self.seed.choice([0.01, 0.05, 0.15])
        for version in range(self.batches):
            while self.committed < version:
                self.run += 1
                is_in_peace = version == self.batches - 1 or self.seed.random() < 0.1
                self.fate.likelihood = 0.0 if is_in_peace else deadliness
                try:
                    self._batch(version)
                    assert version in self.broker.decided or not self._rows_of_all(version)
                    self.committed = version
                except (Death, Fenced):
                    if self.seed.random() < 0.5:
                        protocol.clear(SimulatedLedger(self.broker, Fate(self.seed, 0.0)))
                    self._between_runs()
                    if self.seed.random() < 0.5:
                        self.committed = version
