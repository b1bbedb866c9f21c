"""A case is one thing to measure on every broker; a section is a list of them."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

from bench.brokers import Contender

Figures = dict[str, float]


def nothing(_: Contender) -> AbstractContextManager[Any]:
    return nullcontext()


@dataclass(slots=True, frozen=True)
class Case:
    """`measure` is repeated, brokers taking turns; `setup` surrounds all the repetitions."""

    name: str
    measure: Callable[[Contender, Any], Figures]
    setup: Callable[[Contender], AbstractContextManager[Any]] = nothing
    repeat: int | None = None
    """How often, where once is enough or more would take too long."""
