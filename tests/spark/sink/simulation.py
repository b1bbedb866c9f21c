"""A simulation of Spark for the sink's protocol, in one process, by a seed.

It runs micro-batches as Spark does: tasks, some with two attempts, in parallel or too late, then
`commit`, and `abort` if that fails; and after the death of the driver it repeats the last batch.
Any process may die before or after any request (`Death`), and between any two requests an old
driver continues, an abandoned attempt writes, or a transaction times out.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.spark.sink.simulated_brokers import (
    PREFIX,
    Brokers,
    Death,
    FailureInjector,
    Fenced,
    Forgotten,
    Row,
    SimulatedTransactionLog,
)

from barnabas.client.values import PreparedTransaction
from barnabas.spark.sink import protocol, transactional_ids
from barnabas.spark.sink.commit_decision import CommitDecision, TaskTransaction
from barnabas.spark.sink.protocol import ConflictingWriterError, LostRowsError, TaskReport, WriteJob


@dataclass(slots=True)
class Worker:
    """A Python worker process, with the ids that it reuses, as `TransactionalProducerPool`."""

    name: str
    slots: dict[str, int] = field(default_factory=dict)
    decisions_by_run: dict[str, CommitDecision | None] = field(default_factory=dict)

    def acquire(self, batch: int, last: CommitDecision | None) -> str:
        transactions = () if last is None else last.transactions
        decided = {entry.prepared.transactional_id for entry in transactions}
        free = [it for it, used in self.slots.items() if used < batch and it not in decided]
        transactional_id = (
            free[0] if free else transactional_ids.task_id(PREFIX, self.name, len(self.slots))
        )
        self.slots[transactional_id] = batch
        return transactional_id


@dataclass(slots=True, frozen=True)
class Zombie:
    """A driver that Spark considers dead, and what it was about to commit."""

    job: WriteJob
    reports: list[TaskReport]


class _Standstill(Death):
    """A driver that stops and continues later; Spark considers it dead."""


class Spark:
    """A query over batches of rows, restarted from its checkpoint until all are committed."""

    in_order = True
    has_zombies = True

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.brokers = Brokers(ends_with_new_epoch=self._chance(0.5))
        self.failures = FailureInjector(self.rng, 0.0)
        self.batches = self.rng.randint(2, 5)
        self.tasks = self.rng.randint(1, 3)
        self.has_timeouts = self._chance(0.5)
        self.has_same_rows = self.has_timeouts or self._chance(0.5)
        """Rows that are lost after the decision can only be replaced by the same rows."""
        self.committed = -1  # the checkpoint's commit log
        self.run = 0
        self.workers: list[Worker] = []
        self.drivers: list[SimulatedTransactionLog] = []
        """Processes that commit, which are reused."""
        self.zombies: list[Zombie] = []
        self.late: list[Callable[[], object]] = []
        """Abandoned actions that still happen later."""
        self.may_lose = False
        """Whether open transactions have timed out or were fenced."""
        self.has_no_orphans = True
        """Whether no transaction can have been opened since the driver aborted orphans."""
        self.is_stuck = False
        """Whether the outcome of a decision was forgotten, and the query has failed."""

    @property
    def expected_batches(self) -> set[int]:
        return set(range(self.batches))

    def check(self) -> None:
        """Checks that each row of one run of each batch is committed once, and no other row."""
        for batch in {batch for batch, _, _ in self.brokers.log} | self.expected_batches:
            rows_in_log = sorted(row for row in self.brokers.log if row[0] == batch)
            run = rows_in_log[0][1] if rows_in_log else self.run
            rows = self._rows_of_all(batch, run) if batch in self.expected_batches else []
            # A replay may have other rows, or none.
            may_lack = not rows_in_log and (self.is_stuck or not self.has_same_rows)
            if self.is_stuck and batch == self.committed + 1:
                rows = sorted(set(rows) & set(rows_in_log))
            assert rows_in_log == rows or may_lack, (
                f"batch {batch}: {rows_in_log} instead of {rows}"
            )
        if self.has_no_orphans and not self.is_stuck:
            assert not self.brokers.open_transactions(), "readers would wait"

    def simulate(self) -> None:
        deadliness = self.rng.choice([0.01, 0.05, 0.15])
        runs = self.rng.randint(1, 12)
        while self.committed < self.batches - 1:
            self._begin_run(without_failures=self.run >= runs, deadliness=deadliness)
            try:
                self._run()
            except (Death, Fenced):
                self._end_run()
            except LostRowsError:
                assert self.may_lose, "rows are lost only if transactions were ended by others"
            except Forgotten:
                assert not self.brokers.ends_with_new_epoch, "only transactions V1 are forgotten"
                self.is_stuck = True
                return
        self.failures.likelihood = 0.0
        for zombie in self.zombies:
            self._zombie_commits(zombie)

    def _begin_run(self, *, without_failures: bool, deadliness: float) -> None:
        self.run += 1
        assert self.run < 200, "it makes no progress"
        self.failures.likelihood = 0.0 if without_failures else deadliness

    def _run(self) -> None:
        for batch in range(self.committed + 1, self.batches):
            self._batch(batch)
            self._step()
            if self.committed >= batch:
                raise Death  # a zombie was faster, and Spark notices
            self.committed = batch

    def _batch(self, batch: int) -> None:
        job = WriteJob(PREFIX, str(self.run), batch, "totals", self.in_order)
        reports: list[TaskReport] = []
        transaction_log = self._driver()
        try:
            reports = [self._task(job, task) for task in range(self.tasks)]
            if self.has_zombies and self.failures.likelihood and self._chance(0.1):
                self.zombies.append(Zombie(job, reports))  # it continues later
                raise _Standstill
            self._commit(transaction_log, job, reports)
        except _Standstill:
            raise
        except (Death, Fenced, LostRowsError) as failure:
            # A request failed, not the driver.
            if isinstance(failure, LostRowsError) or self._chance(0.5):
                transaction_log.reset()
                protocol.abort(transaction_log, job, reports)
            raise

    def _commit(
        self,
        transaction_log: SimulatedTransactionLog,
        job: WriteJob,
        reports: list[TaskReport],
        *,
        is_late: bool = False,
    ) -> None:
        """Commit as the writer does."""
        try:
            is_decided = protocol.commit(transaction_log, job, reports)
        except Fenced:
            transaction_log.reset()
            is_decided = protocol.commit(transaction_log, job, reports)
        if is_decided and not is_late:
            self.has_no_orphans = True
            protocol.abort_orphans(transaction_log)
        elif is_decided and self.has_same_rows:
            self._fence_late()

    def _driver(self) -> SimulatedTransactionLog:
        if not self.drivers or self._chance(0.2):
            self.drivers.append(
                SimulatedTransactionLog(self.brokers, self.failures, self._meanwhile)
            )
        return self.rng.choice(self.drivers)

    def _task(self, job: WriteJob, task: int) -> TaskReport:
        for attempt in range(20):
            worker = self._worker()
            if self.failures.likelihood and self._chance(0.03):
                self.workers = [it for it in self.workers if it is not worker]
                self.late.append(lambda it=worker, n=attempt: self._attempt(it, job, task, n))  # type: ignore[misc]
                continue
            try:
                report = self._attempt(worker, job, task, attempt)
            except (Death, Fenced):
                self.workers = [it for it in self.workers if it is not worker]
                continue
            if self._chance(0.1):
                continue  # another attempt was faster; the transaction of this one stays open
            return report
        raise Death

    def _attempt(self, worker: Worker, job: WriteJob, task: int, attempt: int) -> TaskReport:
        transaction_log = SimulatedTransactionLog(self.brokers, self.failures, self._meanwhile)
        if job.run not in worker.decisions_by_run:
            worker.decisions_by_run[job.run] = transaction_log.read()
        last = worker.decisions_by_run[job.run]
        plan = protocol.begin_task(transaction_log, last, job, task)
        assert not plan.replaces or self.may_lose, (
            "rows are lost only if transactions were ended by others"
        )
        is_decided = last is not None and last.batch >= job.batch
        rows = self._rows(job.batch, int(job.run), task)
        written = None
        if plan.writes and rows:
            name = worker.acquire(job.batch, last)
            self._step()
            prepared = self.brokers.init(name)
            for row in rows:
                self._step()
                self.brokers.write(prepared, [row])
            written = TaskTransaction(task, len(rows), prepared)
        return TaskReport(task, attempt, is_decided, written, plan.replaces)

    def _worker(self) -> Worker:
        if not self.workers or self._chance(0.2):
            self.workers.append(Worker(self._worker_name()))
        worker = self.rng.choice(self.workers)
        if self._chance(0.05):  # its pool was evicted by other queries, or the options have changed
            worker.name, worker.slots = self._worker_name(), {}
        return worker

    def _worker_name(self) -> str:
        return f"{self.rng.getrandbits(64):016x}"

    def _end_run(self) -> None:
        self.has_no_orphans = False
        if self._chance(0.7):
            self.workers.clear()  # workers die with their driver, unless it was only stopped
            self.drivers.clear()
        if self.has_timeouts and self._chance(0.2):  # the restart took long
            for transaction in self.brokers.open_transactions():
                if self._chance(0.7):
                    self._time_out(transaction)

    # What else happens between two requests

    def _meanwhile(self) -> None:
        if not self.failures.likelihood:
            return
        if self.zombies and self._chance(0.1):
            self._zombie_commits(self.zombies.pop())
        if self.late and self._chance(0.05):
            self.has_no_orphans = False
            try:
                self.late.pop()()
            except (Death, Fenced, Forgotten, ConflictingWriterError):
                return
        if self.has_timeouts and self._chance(0.005) and (left := self.brokers.open_transactions()):
            self._time_out(self.rng.choice(left))

    def _zombie_commits(self, zombie: Zombie) -> None:
        self.has_no_orphans = False
        transaction_log = SimulatedTransactionLog(self.brokers, self.failures)
        try:
            self._commit(transaction_log, zombie.job, zombie.reports, is_late=True)
            if self.committed == zombie.job.batch - 1 and self._chance(0.3):
                self.committed = zombie.job.batch
        except (Death, Fenced, Forgotten, LostRowsError, ConflictingWriterError):
            return

    def _fence_late(self) -> None:
        """Fence the current open transactions later, when they may have ended or changed."""
        left = self.brokers.open_transactions()
        transaction_log = SimulatedTransactionLog(self.brokers, self.failures)
        self.late.append(lambda: transaction_log.fence(left))
        self.may_lose = True

    def _time_out(self, transaction: PreparedTransaction) -> None:
        self.brokers.time_out(transaction.transactional_id)
        self.may_lose = True

    def _step(self) -> None:
        if self.failures.fails():
            raise Death

    def _chance(self, likelihood: float) -> bool:
        return self.rng.random() < likelihood

    def _rows(self, batch: int, run: int, task: int) -> list[Row]:
        if self.has_same_rows:
            run = 0
        return [(batch, run, task * 10 + row) for row in range((batch + task + run) % 3)]

    def _rows_of_all(self, batch: int, run: int) -> list[Row]:
        return sorted(row for task in range(self.tasks) for row in self._rows(batch, run, task))


class Jobs(Spark):
    """Saves of one application: a failed save is repeated, or left for the next version.

    An earlier decision is then not completed before the next version's save, possibly in the same
    workers. There are no concurrent saves, which the documentation requires.
    """

    in_order = False
    has_zombies = False

    @property
    def expected_batches(self) -> set[int]:
        return self.brokers.decided

    def simulate(self) -> None:
        deadliness = self.rng.choice([0.01, 0.05, 0.15])
        for version in range(self.batches):
            while self.committed < version:
                is_without_failures = version == self.batches - 1 or self._chance(0.1)
                self._begin_run(without_failures=is_without_failures, deadliness=deadliness)
                try:
                    self._batch(version)
                    assert version in self.brokers.decided
                    self.committed = version
                except (Death, Fenced):
                    self._clear()
                    self._end_run()
                    if self._chance(0.5):
                        self.committed = version
                except LostRowsError:
                    assert self.may_lose, "rows are lost only if transactions were ended by others"
                    self._clear()
                    self._repeat_what_was_lost(version)

    def _repeat_what_was_lost(self, version: int) -> None:
        """Do what the error message says."""
        last = self.brokers.last
        if last is not None and last.batch < version:
            self._begin_run(without_failures=True, deadliness=0.0)
            self._batch(last.batch)

    def _clear(self) -> None:
        if self._chance(0.5):
            protocol.abort_orphans(
                SimulatedTransactionLog(self.brokers, FailureInjector(self.rng, 0.0))
            )
