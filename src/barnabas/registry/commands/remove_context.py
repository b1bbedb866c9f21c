"""Forget a context that nothing is left of."""

from dataclasses import dataclass

from barnabas.registry import errors
from barnabas.registry.commands import Decision
from barnabas.registry.records import ContextKey, Record
from barnabas.registry.state import State


@dataclass(slots=True, frozen=True)
class RemoveContext:
    name: str


def decide(request: RemoveContext, state: State) -> Decision[None]:
    context = state.contexts.get(request.name)
    if context is None:
        return Decision(None)
    if context.by_id:
        raise errors.context_not_empty(request.name)
    return Decision(None, (Record(ContextKey(request.name)),))
