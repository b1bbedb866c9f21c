"""What changes the registry: each decides on a request, given the state, and changes nothing.

`decide(request, state)` gives the records to append and the answer to give once they are, or
raises the RegistryError that the request is refused with.
"""

from dataclasses import dataclass
from typing import Generic, TypeVar

from barnabas.registry.records import Record

Answer = TypeVar("Answer")


@dataclass(slots=True, frozen=True)
class Decision(Generic[Answer]):
    """Without records there is nothing to wait for."""

    answer: Answer
    records: tuple[Record, ...] = ()
