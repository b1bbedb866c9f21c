"""Compares two schemas pair by pair, where both may be recursive.

A pair that occurs again while it is being compared is assumed to be compatible. If the assumption
turns out to be wrong, the comparison is repeated with the pairs that it found, until there are no
more.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from barnabas.schemas.bounds import WalkBounds

MAX_REPORTED = 25
"""Differences of one pair that are reported. A type may be used in many places."""


@dataclass(slots=True, frozen=True)
class SchemaDifference:
    """Why the reader cannot read the writer's data, and the path to it from the compared pair."""

    error_type: str
    path: tuple[str, ...] = ()
    about: str = ""

    def under(self, *steps: str) -> "SchemaDifference":
        return replace(self, path=(*steps, *self.path))


Differences = tuple[SchemaDifference, ...]
T = TypeVar("T")

_REPORTED_ELSEWHERE = SchemaDifference("")
"""Stands for a pair whose differences are reported where it occurred first."""


class SchemaComparison(ABC, Generic[T]):
    def __init__(self) -> None:
        self._bounds = WalkBounds("compare it")
        self._broken: set[tuple[int, int]] = set()
        self._start()

    def _start(self) -> None:
        self._compared: dict[tuple[int, int], Differences] = {}
        self._in_progress: set[tuple[int, int]] = set()
        self._has_assumed = False

    def run(self, reader: T, writer: T) -> Differences:
        while True:
            self._start()
            differences = self.compare(reader, writer)
            broken = {pair for pair, differing in self._compared.items() if differing}
            if not self._has_assumed or broken <= self._broken:
                return _reported(differences)
            self._broken |= broken

    def compare(self, reader: T, writer: T) -> Differences:
        """Returns the differences of a pair, or nothing if the reader can read it all."""
        pair = id(reader), id(writer)
        if pair in self._compared:
            return self._compared[pair]
        if pair in self._in_progress:
            if pair in self._broken:
                return (_REPORTED_ELSEWHERE,)
            self._has_assumed = True
            return ()
        self._in_progress.add(pair)
        with self._bounds.level():
            differences = tuple(self.differences(reader, writer))
        self._in_progress.remove(pair)
        self._compared[pair] = _reported(differences)[:MAX_REPORTED] or differences[:1]
        return self._compared[pair]

    def under(self, reader: T, writer: T, *steps: str) -> Iterable[SchemaDifference]:
        return [difference.under(*steps) for difference in self.compare(reader, writer)]

    def reads(self, reader: T, writer: T) -> bool:
        return not self.compare(reader, writer)

    @abstractmethod
    def differences(self, reader: T, writer: T) -> Iterable[SchemaDifference]:
        """Compares a new pair, with `compare`, `under` and `reads` for the parts of the two.

        Both must live as long as the comparison, which identifies pairs by `id()`.
        """


def _reported(differences: Differences) -> Differences:
    return tuple(difference for difference in differences if difference.error_type)
