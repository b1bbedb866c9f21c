"""What a coordinator decides: the records to write, the response, and the effects.

A function that decides has the arguments `(request, state, context)`. It reads the state and
returns values: it writes nothing, starts no timer and sends no message. The shard appends the
records, replays them into the state, performs the effects, and sends the response once the records
are committed. When the append fails, the state is as it was and no effect is performed. Lines are
logged when the records are committed: the log says nothing that a failover undoes.

Classic groups are the exception: see `coordinator.groups.classic`.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Generic, NamedTuple, ParamSpec, TypeVar

from barnabas.coordinator.pending_response import PendingResponse
from barnabas.coordinator.ports import OnCommitted
from barnabas.coordinator.records import CoordinatorRecord
from barnabas.decision import Decision
from barnabas.wire.errors import KafkaError

R = TypeVar("R")
P = ParamSpec("P")


class ProducerStamp(NamedTuple):
    """The producer whose transaction the records belong to."""

    producer_id: int
    producer_epoch: int


@dataclass(slots=True, frozen=True)
class Effect:
    """Something to do once the records of a decision are appended and replayed."""


@dataclass(slots=True, frozen=True)
class StartTimer(Effect):
    """Make another decision in `delay_ms`. A running timer of the same key is restarted."""

    key: Hashable
    delay_ms: int
    decide: Callable[[Any, Any], "CoordinatorDecision[None]"]
    """Called with the state and the context when the timer expires."""
    only_if_absent: bool = False
    """Leaves a running timer of the same key as it is."""
    retry: "Callable[[], StartTimer] | None" = None
    """Returns the timer to start if the records of this one's decision cannot be written. By
    default `decide` is called again after a short delay."""


@dataclass(slots=True, frozen=True)
class CancelTimer(Effect):
    key: Hashable


@dataclass(slots=True, frozen=True)
class LogLine(Effect):
    """Log a line once the records are committed."""

    write: Callable[[], None]

    def on_committed(self, error: KafkaError | None) -> None:
        """Logs the line, unless the records are lost or not committed in time."""
        if error is None:
            self.write()


def log_line(write: Callable[P, None], *args: P.args, **kwargs: P.kwargs) -> LogLine:
    """Returns the line that `write` logs. The arguments must be values that do not change."""
    return LogLine(partial(write, *args, **kwargs))


@dataclass(slots=True, frozen=True)
class CoordinatorDecision(Decision[CoordinatorRecord, R | PendingResponse[R], Effect], Generic[R]):
    """The decision of a coordinator, Kafka's CoordinatorResult.

    A plain response is sent once the records, and everything written before them, are committed.
    A response that waits for more than that is a PendingResponse, which the state machine
    completes.
    """

    is_atomic: bool = True
    """Whether all records must be in one batch. Thousands of tombstones need not be."""
    is_replayed: bool = True
    """Whether the records change the state by being replayed. The records of a classic group do
    not: the group has changed in memory already, and they are for the next coordinator."""
    producer: ProducerStamp | None = None
    """Set if the records are part of a transaction, and pending until it ends."""
    on_committed: OnCommitted | None = None
    """Called with None once the records are committed, or with the error if they cannot be
    appended or are not committed in time. Only classic groups need it."""


@dataclass(slots=True)
class DecisionBuilder:
    """Collects the records and effects of a decision that several functions make together."""

    records: list[CoordinatorRecord] = field(default_factory=list)
    effects: list[Effect] = field(default_factory=list)

    def log(self, write: Callable[P, None], *args: P.args, **kwargs: P.kwargs) -> None:
        self.effects.append(log_line(write, *args, **kwargs))

    def build(self, response: R) -> CoordinatorDecision[R]:
        return CoordinatorDecision(self.records, response, self.effects)


def no_change(*effects: Effect) -> CoordinatorDecision[None]:
    """The decision of a timer that writes no records."""
    return CoordinatorDecision((), None, effects)
