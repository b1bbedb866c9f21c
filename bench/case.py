"""A case is one thing to measure on every contender; a section is a list of them."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

Figures = dict[str, float]


class SystemUnderTest(Protocol):
    """A broker, or a cluster of them."""

    name: str

    def record(self, name: str, **figures: float) -> None: ...


SystemT = TypeVar("SystemT", bound=SystemUnderTest)


def no_setup(_: object) -> AbstractContextManager[Any]:
    return nullcontext()


@dataclass(slots=True, frozen=True)
class Case(Generic[SystemT]):
    """`measure` is repeated, contenders taking turns; `setup` surrounds all the repetitions."""

    name: str
    measure: Callable[[SystemT, Any], Figures]
    setup: Callable[[SystemT], AbstractContextManager[Any]] = no_setup
    repeat: int | None = None
    """How often, where once is enough or more would take too long."""
