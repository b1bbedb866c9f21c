"""A case is one measurement of every system under test; a section is a list of cases."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

Figures = dict[str, float]


class SystemUnderTest(Protocol):
    """A broker, or a cluster."""

    name: str

    def record(self, name: str, **figures: float) -> None: ...


SystemT = TypeVar("SystemT", bound=SystemUnderTest)


def no_setup(_: object) -> AbstractContextManager[Any]:
    return nullcontext()


@dataclass(slots=True, frozen=True)
class Case(Generic[SystemT]):
    """`measure` runs several times, alternating systems; `setup` is entered once around them."""

    name: str
    measure: Callable[[SystemT, Any], Figures]
    setup: Callable[[SystemT], AbstractContextManager[Any]] = no_setup
    repeat: int | None = None
    """The number of runs, if it differs from the option `--repeat`."""
