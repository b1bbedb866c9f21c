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

A transaction that was decided on may have been aborted by its broker, if nobody committed it
within transaction.timeout.ms. Nobody can commit it any more, so its task may write again when the
batch is replayed; a second decision then takes its place.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from barnabas.client.values import PreparedTransaction
from barnabas.spark.sink.decision import Decision, Written


class LostRowsError(RuntimeError):
    """Rows that were decided on, or about to be, are no more: their transactions timed out."""


@dataclass(slots=True, frozen=True)
class Report:
    """What a task tells the driver."""

    task: int
    attempt: int
    began_s: float
    """By the clock of its machine, since 1970."""
    is_decided: bool
    """Whether the batch was decided when the task began."""
    written: Written | None
    """None where there were no rows, or they had been written before."""
    replaces: PreparedTransaction | None = None
    """Decided on for this task, and lost: it has written the rows again."""


class Decisions(Protocol):
    """What tasks ask for."""

    def read(self) -> Decision | None:
        """The last decision, when whatever is about to be decided is."""
        ...

    def complete(
        self, transactions: Sequence[PreparedTransaction], *, committed: bool
    ) -> list[PreparedTransaction]:
        """Commit or abort them, also if that was done before; those that cannot be committed."""
        ...


class Ledger(Decisions, Protocol):
    """What the driver asks for."""

    def take_over(self) -> Decision | None:
        """The last decision; nobody who has taken over before can decide any more."""
        ...

    def decide(self, decision: Decision) -> None:
        """Fails if somebody else has taken over, or leaves open whether it was done."""
        ...

    def ended(self, transactions: Sequence[PreparedTransaction]) -> list[PreparedTransaction]:
        """Those that are not open any more."""
        ...

    def open_ids(self, longer_than_ms: int) -> list[str]:
        """The transactional ids of this query's tasks that have had a transaction open so long."""
        ...

    def fence(self, transactional_ids: Sequence[str]) -> None:
        """Abort what they have open, and shut out who has opened it."""
        ...


# A task


@dataclass(slots=True, frozen=True)
class Task:
    """What a task has to do."""

    writes: bool
    replaces: PreparedTransaction | None = None


def begin_task(decisions: Decisions, last: Decision | None, batch: int, task: int) -> Task:
    """Whether a task writes, given the last decision."""
    if last is None or last.batch < batch:
        return Task(writes=True)
    if last.batch > batch:
        return Task(writes=False)
    mine = [each.transaction for each in last.written if each.task == task]
    lost = decisions.complete(mine, committed=True)
    return Task(writes=True, replaces=lost[0]) if lost else Task(writes=False)


# The driver


def commit(ledger: Ledger, batch: int, reports: Sequence[Report], *, finish_last: bool) -> None:
    """When this returns, each row of the batch is committed once, and nothing else.

    `finish_last`: an earlier batch may have been decided and left at that. (Spark begins no
    micro-batch before the last one is committed, but jobs of one application follow no rule.)
    """
    written = [each.written for each in reports if each.written is not None]
    if not (written or finish_last or any(each.is_decided for each in reports)):
        return
    last = ledger.take_over()
    if last is None or last.batch < batch:
        if last is not None and finish_last:
            _finish(ledger, last)
        _require_open(ledger, batch, written)
        last = Decision(batch, len(reports), tuple(written))
        ledger.decide(last)
    elif last.batch == batch:
        last = _replayed(ledger, last, reports)
    else:
        last = None
    kept = set() if last is None else {each.transaction for each in last.written}
    _abort(ledger, (each.transaction for each in written if each.transaction not in kept))
    if last is not None:
        _finish(ledger, last)


def abort(ledger: Ledger, batch: int, reports: Iterable[Report]) -> None:
    """After a failure: of tasks, or of `commit` itself, which may have decided before it failed."""
    last = ledger.take_over()
    written = {each.written.transaction for each in reports if each.written is not None}
    if last is None or last.batch != batch:
        _abort(ledger, written)
        return
    _abort(ledger, written - {each.transaction for each in last.written})
    _finish(ledger, last)


def sweep(ledger: Ledger, reports: Sequence[Report], now_s: float) -> list[str]:
    """Abort what attempts that died have left open: readers would wait for its timeout.

    After `commit`, when all that counts is committed. What was opened after the batch began is
    left alone unless one of its tasks was tried twice: it may be of a run that has followed this
    one.
    """
    began_s = min((each.began_s for each in reports), default=now_s)
    has_died = any(each.attempt for each in reports)
    left = ledger.open_ids(0 if has_died else max(1, round((now_s - began_s) * 1000)))
    if left:
        ledger.fence(left)
    return left


def clear(ledger: Ledger) -> list[str]:
    """After the abort of a job: its tasks that died, or were stopped, may have left more open.

    What an earlier version decided on is not the job's, and stays open until it is carried out.
    """
    last = ledger.read()
    decided = set() if last is None else {it.transaction.transactional_id for it in last.written}
    left = [each for each in ledger.open_ids(0) if each not in decided]
    if left:
        ledger.fence(left)
    return left


def _replayed(ledger: Ledger, last: Decision, reports: Sequence[Report]) -> Decision:
    """The batch is decided; what was lost of it may have been written again."""
    again = {
        each.replaces: each.written
        for each in reports
        if each.replaces is not None and each.written is not None
    }
    replaced = {each.transaction: again.get(each.transaction) for each in last.written}
    rewritten = [
        (old, new) for old in last.written if (new := replaced[old.transaction]) is not None
    ]
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
    decision = Decision(
        last.batch,
        last.tasks,
        tuple(replaced[each.transaction] or each for each in last.written),
    )
    ledger.decide(decision)
    return decision


def _require_open(ledger: Ledger, batch: int, written: Sequence[Written]) -> None:
    """A last look: better to fail before the decision than after."""
    ended = ledger.ended([each.transaction for each in written]) if written else []
    if ended:
        raise LostRowsError(
            f"batch {batch}: {len(ended)} of {len(written)} transactions have ended before the "
            f"batch was complete, {ended[0].transactional_id} for one: the batch took longer than "
            f"kafka.transaction.timeout.ms. Set it higher (and the brokers' "
            f"transaction.max.timeout.ms), or make batches smaller"
        )


def _finish(ledger: Ledger, decision: Decision) -> None:
    if not decision.written:
        return
    lost = set(ledger.complete([each.transaction for each in decision.written], committed=True))
    if lost:
        rows = sum(each.rows for each in decision.written if each.transaction in lost)
        raise LostRowsError(
            f"batch {decision.batch}: {rows:,} rows in {len(lost)} transactions were decided on, "
            f"but timed out before they were committed. They are written again when the batch is "
            f"replayed: start the query again from its checkpoint, without other changes"
        )


def _abort(ledger: Ledger, transactions: Iterable[PreparedTransaction]) -> None:
    listed = list(transactions)
    if listed:
        ledger.complete(listed, committed=False)
