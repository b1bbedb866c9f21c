"""Spark as far as the sink's protocol meets it, in one process, by a seed.

It runs micro-batches as it does: tasks, some of them tried twice, beside each other or too late,
then `commit`, and `abort` where that fails; and after the death of the driver the last batch
again. Anything may end before or after any request (`Death`), and between any two a driver that
is thought dead goes on, an attempt that nobody waits for writes, or a transaction times out.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.spark.sink.simulated_brokers import (
    PREFIX,
    Brokers,
    Death,
    Fate,
    Fenced,
    Forgotten,
    Row,
    SimulatedLedger,
)

from barnabas.client.values import PreparedTransaction
from barnabas.spark.sink import protocol, transactional_ids
from barnabas.spark.sink.commit_decision import CommitDecision, TaskTransaction
from barnabas.spark.sink.protocol import ConflictingWriterError, LostRowsError, TaskReport, WriteJob


@dataclass(slots=True)
class Worker:
    """A Python worker process, with the ids that it uses again, as `pool.Pool` does."""

    name: str
    slots: dict[str, int] = field(default_factory=dict)
    met: dict[str, CommitDecision | None] = field(default_factory=dict)

    def lane(self, batch: int, last: CommitDecision | None) -> str:
        listed = () if last is None else last.transactions
        decided = {each.prepared.transactional_id for each in listed}
        free = [it for it, used in self.slots.items() if used < batch and it not in decided]
        chosen = free[0] if free else transactional_ids.task_id(PREFIX, self.name, len(self.slots))
        self.slots[chosen] = batch
        return chosen


@dataclass(slots=True, frozen=True)
class Zombie:
    """A driver that is thought dead, and what it was about to commit."""

    job: WriteJob
    reports: list[TaskReport]


class _Standstill(Death):
    """Taken for a death."""


class Spark:
    """A query over batches of rows, restarted from its checkpoint until all are committed."""

    in_order = True
    has_zombies = True

    def __init__(self, seed: int) -> None:
        self.seed = random.Random(seed)
        self.brokers = Brokers(ends_with_new_epoch=self._is(0.5))
        self.fate = Fate(self.seed, 0.0)
        self.batches = self.seed.randint(2, 5)
        self.tasks = self.seed.randint(1, 3)
        self.has_timeouts = self._is(0.5)
        self.has_same_rows = self.has_timeouts or self._is(0.5)
        """What is lost after the decision can be replaced by the same rows alone."""
        self.committed = -1  # the checkpoint's commit log
        self.run = 0
        self.workers: list[Worker] = []
        self.drivers: list[SimulatedLedger] = []
        """Processes that commit, as they are used again."""
        self.zombies: list[Zombie] = []
        self.late: list[Callable[[], object]] = []
        """What nobody waits for any more."""
        self.may_lose = False
        """Whether others have ended what was open."""
        self.is_swept = True
        """Whether nobody has come late since the driver has looked."""
        self.is_stuck = False
        """Whether nobody can tell what became of what was decided, and the query has given up."""

    @property
    def expected_batches(self) -> set[int]:
        return set(range(self.batches))

    def check(self) -> None:
        """Each row of one run of each batch, once, and nothing else."""
        for batch in {batch for batch, _, _ in self.brokers.log} | self.expected_batches:
            found = sorted(row for row in self.brokers.log if row[0] == batch)
            run = found[0][1] if found else self.run
            rows = self._rows_of_all(batch, run) if batch in self.expected_batches else []
            # A replay may have other rows, and none at all.
            may_lack = not found and (self.is_stuck or not self.has_same_rows)
            if self.is_stuck and batch == self.committed + 1:
                rows = sorted(set(rows) & set(found))
            assert found == rows or may_lack, f"batch {batch}: {found} instead of {rows}"
        if self.is_swept and not self.is_stuck:
            assert not self.brokers.open_transactions(), "readers would wait"

    def play(self) -> None:
        deadliness = self.seed.choice([0.01, 0.05, 0.15])
        runs = self.seed.randint(1, 12)
        while self.committed < self.batches - 1:
            self._begin_run(in_peace=self.run >= runs, deadliness=deadliness)
            try:
                self._run()
            except (Death, Fenced):
                self._end_run()
            except LostRowsError:
                assert self.may_lose, "nothing is lost unless others have ended it"
            except Forgotten:
                assert not self.brokers.ends_with_new_epoch, "only the old flow forgets"
                self.is_stuck = True
                return
        self.fate.likelihood = 0.0
        for zombie in self.zombies:
            self._zombie_commits(zombie)

    def _begin_run(self, *, in_peace: bool, deadliness: float) -> None:
        self.run += 1
        assert self.run < 200, "it does not get on"
        self.fate.likelihood = 0.0 if in_peace else deadliness

    def _run(self) -> None:
        for batch in range(self.committed + 1, self.batches):
            self._batch(batch)
            self._step()
            if self.committed >= batch:
                raise Death  # a zombie was quicker, and Spark notices
            self.committed = batch

    def _batch(self, batch: int) -> None:
        job = WriteJob(PREFIX, str(self.run), batch, "totals", self.in_order)
        reports: list[TaskReport] = []
        ledger = self._driver()
        try:
            reports = [self._task(job, task) for task in range(self.tasks)]
            if self.has_zombies and self.fate.likelihood and self._is(0.1):
                self.zombies.append(Zombie(job, reports))  # it comes to life again later
                raise _Standstill
            self._commit(ledger, job, reports)
        except _Standstill:
            raise
        except (Death, Fenced, LostRowsError) as failure:
            # If it was a request that failed, and not the driver.
            if isinstance(failure, LostRowsError) or self._is(0.5):
                ledger.hand_over()
                protocol.abort(ledger, job, reports)
            raise

    def _commit(
        self,
        ledger: SimulatedLedger,
        job: WriteJob,
        reports: list[TaskReport],
        *,
        is_late: bool = False,
    ) -> None:
        """As the writer does."""
        try:
            is_decided = protocol.commit(ledger, job, reports)
        except Fenced:
            ledger.hand_over()
            is_decided = protocol.commit(ledger, job, reports)
        if is_decided and not is_late:
            self.is_swept = True
            protocol.abort_orphans(ledger)
        elif is_decided and self.has_same_rows:
            self._sweep_late()

    def _driver(self) -> SimulatedLedger:
        if not self.drivers or self._is(0.2):
            self.drivers.append(SimulatedLedger(self.brokers, self.fate, self._meanwhile))
        return self.seed.choice(self.drivers)

    def _task(self, job: WriteJob, task: int) -> TaskReport:
        for attempt in range(20):
            worker = self._worker()
            if self.fate.likelihood and self._is(0.03):
                self.workers = [it for it in self.workers if it is not worker]
                self.late.append(lambda it=worker, n=attempt: self._attempt(it, job, task, n))  # type: ignore[misc]
                continue
            try:
                report = self._attempt(worker, job, task, attempt)
            except (Death, Fenced):
                self.workers = [it for it in self.workers if it is not worker]
                continue
            if self._is(0.1):
                continue  # another attempt was quicker; this one stays as it is
            return report
        raise Death

    def _attempt(self, worker: Worker, job: WriteJob, task: int, attempt: int) -> TaskReport:
        ledger = SimulatedLedger(self.brokers, self.fate, self._meanwhile)
        if job.run not in worker.met:
            worker.met[job.run] = ledger.read()
        last = worker.met[job.run]
        plan = protocol.begin_task(ledger, last, job, task)
        assert not plan.replaces or self.may_lose, "nothing is lost unless others have ended it"
        is_decided = last is not None and last.batch >= job.batch
        rows = self._rows(job.batch, int(job.run), task)
        written = None
        if plan.writes and rows:
            name = worker.lane(job.batch, last)
            self._step()
            prepared = self.brokers.init(name)
            for row in rows:
                self._step()
                self.brokers.write(prepared, [row])
            written = TaskTransaction(task, len(rows), prepared)
        return TaskReport(task, attempt, is_decided, written, plan.replaces)

    def _worker(self) -> Worker:
        if not self.workers or self._is(0.2):
            self.workers.append(Worker(self._worker_name()))
        worker = self.seed.choice(self.workers)
        if self._is(0.05):  # other queries have had it forget this one, or its options have changed
            worker.name, worker.slots = self._worker_name(), {}
        return worker

    def _worker_name(self) -> str:
        return f"{self.seed.getrandbits(64):016x}"

    def _end_run(self) -> None:
        self.is_swept = False
        if self._is(0.7):
            self.workers.clear()  # they die with their driver, unless it was only stopped
            self.drivers.clear()
        if self.has_timeouts and self._is(0.2):  # it took long to start again
            for transaction in self.brokers.open_transactions():
                if self._is(0.7):
                    self._time_out(transaction)

    # What happens besides

    def _meanwhile(self) -> None:
        if not self.fate.likelihood:
            return
        if self.zombies and self._is(0.1):
            self._zombie_commits(self.zombies.pop())
        if self.late and self._is(0.05):
            self.is_swept = False
            try:
                self.late.pop()()
            except (Death, Fenced, Forgotten, ConflictingWriterError):
                return
        if self.has_timeouts and self._is(0.005) and (left := self.brokers.open_transactions()):
            self._time_out(self.seed.choice(left))

    def _zombie_commits(self, zombie: Zombie) -> None:
        self.is_swept = False
        ledger = SimulatedLedger(self.brokers, self.fate)
        try:
            self._commit(ledger, zombie.job, zombie.reports, is_late=True)
            if self.committed == zombie.job.batch - 1 and self._is(0.3):
                self.committed = zombie.job.batch
        except (Death, Fenced, Forgotten, LostRowsError, ConflictingWriterError):
            return

    def _sweep_late(self) -> None:
        """What it has found is fenced when others have gone on, or ended it."""
        left = self.brokers.open_transactions()
        ledger = SimulatedLedger(self.brokers, self.fate)
        self.late.append(lambda: ledger.fence(left))
        self.may_lose = True

    def _time_out(self, transaction: PreparedTransaction) -> None:
        self.brokers.time_out(transaction.transactional_id)
        self.may_lose = True

    def _step(self) -> None:
        if self.fate.strikes():
            raise Death

    def _is(self, likelihood: float) -> bool:
        return self.seed.random() < likelihood

    def _rows(self, batch: int, run: int, task: int) -> list[Row]:
        if self.has_same_rows:
            run = 0
        return [(batch, run, task * 10 + row) for row in range((batch + task + run) % 3)]

    def _rows_of_all(self, batch: int, run: int) -> list[Row]:
        return sorted(row for task in range(self.tasks) for row in self._rows(batch, run, task))


class Jobs(Spark):
    """Saves of one application: one that fails is repeated, or left for the next version.

    What was decided then is left at that until the next version's save, in workers that may be
    the same. Nobody else saves meanwhile, which is asked of users.
    """

    in_order = False
    has_zombies = False

    @property
    def expected_batches(self) -> set[int]:
        return self.brokers.decided

    def play(self) -> None:
        deadliness = self.seed.choice([0.01, 0.05, 0.15])
        for version in range(self.batches):
            while self.committed < version:
                is_in_peace = version == self.batches - 1 or self._is(0.1)
                self._begin_run(in_peace=is_in_peace, deadliness=deadliness)
                try:
                    self._batch(version)
                    assert version in self.brokers.decided
                    self.committed = version
                except (Death, Fenced):
                    self._clear()
                    self._end_run()
                    if self._is(0.5):
                        self.committed = version
                except LostRowsError:
                    assert self.may_lose, "nothing is lost unless others have ended it"
                    self._clear()
                    self._repeat_what_was_lost(version)

    def _repeat_what_was_lost(self, version: int) -> None:
        """As its message says."""
        last = self.brokers.last
        if last is not None and last.batch < version:
            self._begin_run(in_peace=True, deadliness=0.0)
            self._batch(last.batch)

    def _clear(self) -> None:
        if self._is(0.5):
            protocol.abort_orphans(SimulatedLedger(self.brokers, Fate(self.seed, 0.0)))
