"""The exactly-once protocol: the steps of tasks and driver, correct if any process dies in between.

It does no I/O: it calls a `TransactionLog`, which is the brokers or a simulation of them. A call
may fail, or its process may die, at any point; a later call then repeats the step, and every step
may run twice. The commit point is `TransactionLog.decide`.

    task            reads the last decision. If its batch is not decided, it writes in a transaction
                    of its own, which stays open. If it is decided, it writes nothing.
    commit          fences older drivers and reads the last decision. Unless the batch is decided,
                    it decides on the transactions of the tasks. It commits the transactions in the
                    decision and aborts the others.
    abort           does the same without a decision of its own: an earlier decision stays valid.
    abort_orphans   aborts transactions that attempts have left open and no decision names.

The broker may have aborted a transaction of a decision, if no driver committed it within
transaction.timeout.ms. It can never be committed then, so its task may write again when the batch
is replayed; a second decision replaces the first.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from barnabas.client.values import PreparedTransaction
from barnabas.spark.sink.commit_decision import CommitDecision, TaskTransaction


class LostRowsError(RuntimeError):
    """Rows of a decision, or of the next one, are lost: their transactions timed out."""


class ConflictingWriterError(RuntimeError):
    """The last decision under this prefix was made by another query or application."""


@dataclass(slots=True, frozen=True)
class WriteJob:
    """A micro-batch of a query, or a batch write (a save)."""

    prefix: str
    """The driver's transactional id, and the group that has the decisions."""
    run: str
    """The run of the query; for a save, an id of the save."""
    batch: int
    """The batch id; for a save, its version."""
    topic: str | None
    """The topic of all rows; None if each row names its own."""
    in_order: bool = True
    """Whether a batch starts only after the one before is committed, as micro-batches do. (Saves of
    one application may start after a save that was decided and not committed.)"""


@dataclass(slots=True, frozen=True)
class TaskReport:
    """What a task reports to the driver."""

    task: int
    attempt: int
    is_decided: bool
    """Whether the batch was decided when the task started."""
    transaction: TaskTransaction | None
    """None if there were no rows, or they had been written before."""
    replaces: PreparedTransaction | None = None
    """The lost transaction of this task in the last decision, whose rows it has written again."""


class DecisionReader(Protocol):
    """What tasks need of the brokers."""

    def read(self) -> CommitDecision | None:
        """Returns the last decision; waits for a decision in flight."""
        ...

    def complete(
        self, transactions: Sequence[PreparedTransaction], *, committed: bool
    ) -> list[PreparedTransaction]:
        """Commit or abort transactions, even if that was done before.

        Returns those that cannot be committed.
        """
        ...


class TransactionLog(DecisionReader, Protocol):
    """What the driver needs of the brokers."""

    def fence_other_drivers(self) -> CommitDecision | None:
        """Returns the last decision; after that, no earlier driver can decide."""
        ...

    def decide(self, decision: CommitDecision) -> None:
        """Raises if another driver has fenced this one. Any other error leaves the outcome open."""
        ...

    def find_ended(self, transactions: Sequence[PreparedTransaction]) -> list[PreparedTransaction]:
        """Returns the transactions that are not open any more."""
        ...

    def open_transactions(self) -> list[PreparedTransaction]:
        """Returns the open transactions of this query's tasks, prepared or not."""
        ...

    def fence(self, transactions: Sequence[PreparedTransaction]) -> None:
        """Abort those that are still open, and fence their producers."""
        ...


# A task


@dataclass(slots=True, frozen=True)
class TaskPlan:
    """Whether a task writes, and which lost transaction it replaces."""

    writes: bool
    replaces: PreparedTransaction | None = None


def begin_task(
    decisions: DecisionReader, last: CommitDecision | None, job: WriteJob, task: int
) -> TaskPlan:
    """Plan a task by the last decision."""
    if last is None or last.batch < job.batch:
        return TaskPlan(writes=True)
    _require_own(last, job, may_be_older=not job.in_order)
    if last.batch > job.batch:
        return TaskPlan(writes=False)
    own = [entry.prepared for entry in last.transactions if entry.task == task]
    lost = decisions.complete(own, committed=True)
    return TaskPlan(writes=True, replaces=lost[0]) if lost else TaskPlan(writes=False)


# The driver


def commit(transaction_log: TransactionLog, job: WriteJob, reports: Sequence[TaskReport]) -> bool:
    """Commit the batch: afterwards each of its rows is committed once, and no other row is.

    Returns whether there was anything to decide.
    """
    written = [report.transaction for report in reports if report.transaction is not None]
    if job.in_order and not written and not any(report.is_decided for report in reports):
        return False
    last = transaction_log.fence_other_drivers()
    if last is None or last.batch < job.batch:
        if last is not None and not job.in_order:
            _commit_all(transaction_log, last)
        _require_open(transaction_log, job.batch, written)
        last = CommitDecision(job.batch, len(reports), tuple(written), job.topic)
        transaction_log.decide(last)
    elif last.batch == job.batch:
        last = _replace_lost(transaction_log, last, reports)
    decided = {entry.prepared for entry in last.transactions}
    _abort(transaction_log, (entry.prepared for entry in written if entry.prepared not in decided))
    _require_own(last, job, may_be_older=not job.in_order and not written)
    _commit_all(transaction_log, last)
    return True


def abort(transaction_log: TransactionLog, job: WriteJob, reports: Iterable[TaskReport]) -> None:
    """Abort the batch after tasks failed, or after `commit` failed, possibly with a decision."""
    last = transaction_log.fence_other_drivers()
    decided = set() if last is None else {entry.prepared for entry in last.transactions}
    written = {report.transaction.prepared for report in reports if report.transaction is not None}
    _abort(transaction_log, written - decided)
    if last is not None and last.batch == job.batch:
        _commit_all(transaction_log, last)


def abort_orphans(transaction_log: TransactionLog) -> list[PreparedTransaction]:
    """Abort open transactions of attempts that died or were stopped; readers wait for them.

    Called after a batch was decided, so that no driver can still decide on any of them, or after
    the abort of a job. Transactions in a decision stay open until they are committed.
    """
    last = transaction_log.read()
    decided = set() if last is None else {entry.prepared for entry in last.transactions}
    orphans = [entry for entry in transaction_log.open_transactions() if entry not in decided]
    if orphans:
        transaction_log.fence(orphans)
    return orphans


def _require_own(last: CommitDecision, job: WriteJob, *, may_be_older: bool) -> None:
    """Raises ConflictingWriterError unless the decision on this or a later batch is this job's."""
    if last.topic != job.topic:
        raise ConflictingWriterError(
            f"{job.prefix}: batch {last.batch} was written to {last.topic or 'many topics'}, so "
            f"batch {job.batch} is not written to {job.topic or 'many topics'}. Give each write "
            f"its own txnAppId; give a query that continues from the checkpoint of another, or "
            f"now writes elsewhere, its own transactionalIdPrefix"
        )
    if last.batch > job.batch and not may_be_older:
        raise ConflictingWriterError(
            f"{job.prefix}: batch {job.batch} comes after batch {last.batch} was decided, and is "
            f"not written: another driver runs the same query or saves with the same txnAppId, or "
            f"the query's checkpoint was set back or copied. Stop the other driver; or set another "
            f"transactionalIdPrefix to write everything from this checkpoint on"
        )


def _replace_lost(
    transaction_log: TransactionLog, last: CommitDecision, reports: Sequence[TaskReport]
) -> CommitDecision:
    """The batch is decided; tasks may have written its lost transactions again."""
    replacements = {
        report.replaces: report.transaction
        for report in reports
        if report.replaces and report.transaction
    }
    rewritten = [
        (old, replacements[old.prepared])
        for old in last.transactions
        if old.prepared in replacements
    ]
    if not rewritten:
        return last
    if len(reports) != last.tasks or any(old.rows != new.rows for old, new in rewritten):
        _abort(transaction_log, (new.prepared for _, new in rewritten))
        raise LostRowsError(
            f"batch {last.batch}: {sum(old.rows for old, _ in rewritten):,} rows were decided on, "
            f"but not committed before their transactions timed out, and the tasks of the batch "
            f"now have other rows ({len(reports)} instead of {last.tasks} tasks), so that they "
            f"cannot be written again alone. Run the query as it was before; or set another "
            f"transactionalIdPrefix to write the whole batch again"
        )
    _require_open(transaction_log, last.batch, [new for _, new in rewritten])
    transactions = tuple(replacements.get(old.prepared, old) for old in last.transactions)
    decision = replace(last, transactions=transactions)
    transaction_log.decide(decision)
    return decision


def _require_open(
    transaction_log: TransactionLog, batch: int, transactions: Sequence[TaskTransaction]
) -> None:
    """Raises LostRowsError if a transaction has ended: it is better to fail before the decision."""
    ended = transaction_log.find_ended([entry.prepared for entry in transactions])
    if ended:
        raise LostRowsError(
            f"batch {batch}: {len(ended)} of {len(transactions)} transactions have ended before "
            f"the batch was complete, {ended[0].transactional_id} among them: the batch took "
            f"longer than kafka.transaction.timeout.ms, or another driver of the query has "
            f"aborted them. Set the timeout higher (and the brokers' "
            f"transaction.max.timeout.ms), or make batches smaller"
        )


def _commit_all(transaction_log: TransactionLog, decision: CommitDecision) -> None:
    lost = set(
        transaction_log.complete(
            [entry.prepared for entry in decision.transactions], committed=True
        )
    )
    if lost:
        rows = sum(entry.rows for entry in decision.transactions if entry.prepared in lost)
        raise LostRowsError(
            f"batch {decision.batch}: {rows:,} rows in {len(lost)} transactions were decided on, "
            f"but timed out before they were committed. They are written again when the batch is "
            f"replayed: start the query again from its checkpoint, without other changes, or save "
            f"that version again"
        )


def _abort(transaction_log: TransactionLog, transactions: Iterable[PreparedTransaction]) -> None:
    transaction_log.complete(list(transactions), committed=False)
