"""What a registry knows after some records."""

from barnabas.registry.records import Record
from barnabas.registry.state import State


def state_of(*records: Record) -> State:
    state = State()
    for each in records:
        state.apply(each)
    return state
