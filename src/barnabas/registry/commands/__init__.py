"""Commands that change the registry, each with functions `decide(request, state) -> Decision`.

A decision reads the state alone. It needs no context: ids and versions follow from the state, and
records carry neither time nor chance. Deciding raises the RegistryError that the client receives.
Registry decisions have no effects.
"""

from typing import Never, TypeAlias, TypeVar

from barnabas.decision import Decision
from barnabas.registry.records import RegistryRecord

ResponseT = TypeVar("ResponseT")
RegistryDecision: TypeAlias = Decision[RegistryRecord, ResponseT, Never]
