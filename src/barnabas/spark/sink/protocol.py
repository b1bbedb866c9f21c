"""Each row once: what tasks and the driver do, in which order, whoever dies in between.

No I/O of its own: a `Ledger` is asked, which is the brokers or a simulation of them. A call may
fail or end with its process at any point; it is then made again by somebody, and every step may
be taken twice. The one moment that counts is `Ledger.decide`.

    task        reads the last decision. Its batch is not decided: it writes in a transaction of
                its own, which stays open. It is decided: it writes nothing.
    commit      takes over (older drivers are shut out), reads the last decision; decides on what
                the tasks have written unless the batch is decided already; commits what was
                decided; aborts what was not.
    abort       the same with nothing to decide on: what was decided in the meantime stands.
    sweep       aborts what attempts have left open that no decision names.

A transaction that was decided on may have been aborted by its broker, if nobody committed it
within transaction.timeout.ms. Nobody can commit it any more, so its task may write again when the
batch is replayed; a second decision then takes its place.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from barnabas.client.values import PreparedTransaction
from barnabas.spark.sink.commit_decision import CommitDecision, TaskTransaction


class LostRowsError(RuntimeError):
    """Rows that were decided on, or about to be, are no more: their transactions timed out."""


class OtherWriterError(RuntimeError):
    """What was decided under this name is not what this query or application has decided."""


@dataclass(slots=True, frozen=True)
class WriteJob:
    """A micro-batch, or a save: what tasks and a driver write for."""

    prefix: str
    """The name under which decisions are made."""
    run: str
    """Of a query; of a save, the save."""
    batch: int
    """Or the version of a save."""
    topic: str | None
    """Of all rows; None where each names its own."""
    in_order: bool = True
    """Whether none begins before the one before is committed, as Spark does with micro-batches.
    (Saves of one application follow no rule: one may have been decided and left at that.)"""


@dataclass(slots=True, frozen=True)
class TaskReport:
    """What a task tells the driver."""

    task: int
    attempt: int
    is_decided: bool
    """Whether the batch was decided when the task began."""
    written: TaskTransaction | None
    """None where there were no rows, or they had been written before."""
    replaces: PreparedTransaction | None = None
    """Decided on for this task, and lost: it has written the rows again."""


class DecisionReader(Protocol):
    """What tasks ask for."""

    def read(self) -> CommitDecision | None:
        """The last decision, when whatever is about to be decided is."""
        ...

    def complete(
        self, transactions: Sequence[PreparedTransaction], *, committed: bool
    ) -> list[PreparedTransaction]:
        """Commit or abort them, also if that was done before; those that cannot be committed."""
        ...


class TransactionLog(DecisionReader, Protocol):
    """What the driver asks for."""

    def take_over(self) -> CommitDecision | None:
        """The last decision; nobody who has taken over before can decide any more."""
        ...

    def decide(self, decision: CommitDecision) -> None:
        """Fails if somebody else has taken over, or leaves open whether it was done."""
        ...

    def ended(self, transactions: Sequence[PreparedTransaction]) -> list[PreparedTransaction]:
        """Those that are not open any more."""
        ...

    def open_transactions(self) -> list[PreparedTransaction]:
        """What tasks of this query have open, with rows still coming or prepared."""
        ...

    def fence(self, transactions: Sequence[PreparedTransaction]) -> None:
        """Abort those that are still open, and shut out who has opened them."""
        ...


# A task


@dataclass(slots=True, frozen=True)
class TaskPlan:
    """What a task has to do."""

    writes: bool
    replaces: PreparedTransaction | None = None


def begin_task(
    decisions: DecisionReader, last: CommitDecision | None, job: WriteJob, task: int
) -> TaskPlan:
    """Whether a task writes, given the last decision."""
    if last is None or last.batch < job.batch:
        return TaskPlan(writes=True)
    _require_own(last, job, may_be_older=not job.in_order)
    if last.batch > job.batch:
        return TaskPlan(writes=False)
    mine = [each.transaction for each in last.written if each.task == task]
    lost = decisions.complete(mine, committed=True)
    return TaskPlan(writes=True, replaces=lost[0]) if lost else TaskPlan(writes=False)


# The driver


def commit(ledger: TransactionLog, job: WriteJob, reports: Sequence[TaskReport]) -> bool:
    """When this returns, each row of the batch is committed once, and nothing else.

    Whether there was anything to decide.
    """
    written = [each.written for each in reports if each.written is not None]
    if job.in_order and not written and not any(each.is_decided for each in reports):
        return False
    last = ledger.take_over()
    if last is None or last.batch < job.batch:
        if last is not None and not job.in_order:
            _finish(ledger, last)
        _require_open(ledger, job.batch, written)
        last = CommitDecision(job.batch, len(reports), tuple(written), job.topic)
        ledger.decide(last)
    elif last.batch == job.batch:
        last = _replayed(ledger, last, reports)
    kept = {each.transaction for each in last.written}
    _abort(ledger, (each.transaction for each in written if each.transaction not in kept))
    _require_own(last, job, may_be_older=not job.in_order and not written)
    _finish(ledger, last)
    return True


def abort(ledger: TransactionLog, job: WriteJob, reports: Iterable[TaskReport]) -> None:
    """After a failure: of tasks, or of `commit` itself, which may have decided before it failed."""
    last = ledger.take_over()
    decided = set() if last is None else {each.transaction for each in last.written}
    written = {each.written.transaction for each in reports if each.written is not None}
    _abort(ledger, written - decided)
    if last is not None and last.batch == job.batch:
        _finish(ledger, last)


def sweep(ledger: TransactionLog) -> list[PreparedTransaction]:
    """Abort what attempts that died, lost or were stopped have left open; readers wait for it.

    After a batch was decided, so that nobody else decides on any of it; or after the abort of a
    job. What was decided stays open until it is carried out, whoever has decided it.
    """
    last = ledger.read()
    decided = set() if last is None else {each.transaction for each in last.written}
    left = [each for each in ledger.open_transactions() if each not in decided]
    if left:
        ledger.fence(left)
    return left


def _require_own(last: CommitDecision, job: WriteJob, *, may_be_older: bool) -> None:
    """The batch was decided before, or one after it: is that what this job asks for?"""
    if last.topic != job.topic:
        raise OtherWriterError(
            f"{job.prefix}: batch {last.batch} was written to {last.topic or 'many topics'}, so "
            f"batch {job.batch} is not written to {job.topic or 'many topics'}. Give each place "
            f"that writes a txnAppId of its own; give a query that goes on from the checkpoint of "
            f"another, or now writes elsewhere, a transactionalIdPrefix of its own"
        )
    if last.batch > job.batch and not may_be_older:
        raise OtherWriterError(
            f"{job.prefix}: batch {job.batch} comes after batch {last.batch} was decided, and is "
            f"not written: another driver runs the same query or saves with the same txnAppId, or "
            f"the query's checkpoint was set back or copied. Stop the other; or set another "
            f"transactionalIdPrefix to write all from this checkpoint on"
        )


def _replayed(
    ledger: TransactionLog, last: CommitDecision, reports: Sequence[TaskReport]
) -> CommitDecision:
    """The batch is decided; what was lost of it may have been written again."""
    again = {each.replaces: each.written for each in reports if each.replaces and each.written}
    rewritten = [(old, again[old.transaction]) for old in last.written if old.transaction in again]
    if not rewritten:
        return last
    if len(reports) != last.tasks or any(old.rows != new.rows for old, new in rewritten):
        _abort(ledger, (new.transaction for _, new in rewritten))
        raise LostRowsError(
            f"batch {last.batch}: {sum(old.rows for old, _ in rewritten):,} rows were decided on, "
            f"but not committed before their transactions timed out, and the batch now has other "
            f"rows in its tasks ({len(reports)} instead of {last.tasks} tasks), so that they "
            f"cannot be written again alone. Let the query run as it did before; or set another "
            f"transactionalIdPrefix to have the whole batch written again"
        )
    _require_open(ledger, last.batch, [new for _, new in rewritten])
    written = tuple(again.get(each.transaction, each) for each in last.written)
    decision = replace(last, written=written)
    ledger.decide(decision)
    return decision


def _require_open(ledger: TransactionLog, batch: int, written: Sequence[TaskTransaction]) -> None:
    """A last look: better to fail before the decision than after."""
    ended = ledger.ended([each.transaction for each in written])
    if ended:
        raise LostRowsError(
            f"batch {batch}: {len(ended)} of {len(written)} transactions have ended before the "
            f"batch was complete, {ended[0].transactional_id} for one: the batch took longer than "
            f"kafka.transaction.timeout.ms, or another driver of the query has aborted them. Set "
            f"the timeout higher (and the brokers' transaction.max.timeout.ms), or make batches "
            f"smaller"
        )


def _finish(ledger: TransactionLog, decision: CommitDecision) -> None:
    lost = set(ledger.complete([each.transaction for each in decision.written], committed=True))
    if lost:
        rows = sum(each.rows for each in decision.written if each.transaction in lost)
        raise LostRowsError(
            f"batch {decision.batch}: {rows:,} rows in {len(lost)} transactions were decided on, "
            f"but timed out before they were committed. They are written again when the batch is "
            f"replayed: start the query again from its checkpoint, without other changes, or save "
            f"that version again"
        )


def _abort(ledger: TransactionLog, transactions: Iterable[PreparedTransaction]) -> None:
    ledger.complete(list(transactions), committed=False)
