"""Builds a state from records."""

from barnabas.registry.records import RegistryRecord
from barnabas.registry.state import RegistryState


def state_of(*records: RegistryRecord) -> RegistryState:
    state = RegistryState()
    for record in records:
        state.apply(record)
    return state
