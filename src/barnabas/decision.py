"""What a state machine decides on a request, in one shape for controller, coordinators, registry.

A state machine has functions `decide(request, state, context) -> Decision`. Deciding reads the
state and returns values. It starts no timer, sends no message, writes no file and changes no
state: the runtime appends the records, replays them into the state, performs the effects and
sends the response once the records are committed.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

RecordT = TypeVar("RecordT")
ResponseT = TypeVar("ResponseT")
EffectT = TypeVar("EffectT")


@dataclass(slots=True, frozen=True)
class Decision(Generic[RecordT, ResponseT, EffectT]):
    """The outcome of deciding. Nothing of it holds before its records are in the log."""

    records: Sequence[RecordT]
    response: ResponseT
    """Sent once the records are committed."""
    effects: Sequence[EffectT] = ()
    """Performed in order after the append: timers to set or cancel, messages to send."""
