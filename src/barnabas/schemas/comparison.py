"""Comparing two schemas pair by pair, where both may be recursive.

A pair that is met again while it is being compared is taken for compatible, which may be wrong:
then the comparison is made once more with what it found, until it finds no more.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from barnabas.schemas.bounds import WalkBounds

MAX_REPORTED = 25
"""Differences of one pair; a type used everywhere need not be reported everywhere."""


@dataclass(slots=True, frozen=True)
class SchemaDifference:
    """What the reader lacks to read what the writer wrote, and where, as seen from the pair."""

    error_type: str
    path: tuple[str, ...] = ()
    about: str = ""

    def under(self, *steps: str) -> "SchemaDifference":
        return replace(self, path=(*steps, *self.path))


Found = tuple[SchemaDifference, ...]
T = TypeVar("T")

_BROKEN_FURTHER_UP = SchemaDifference("")
"""Of a pair whose differences are reported where it was met first."""


class SchemaComparison(ABC, Generic[T]):
    def __init__(self) -> None:
        self._bounds = WalkBounds("compare it")
        self._broken: set[tuple[int, int]] = set()
        self._start()

    def _start(self) -> None:
        self._compared: dict[tuple[int, int], Found] = {}
        self._under_way: set[tuple[int, int]] = set()
        self._assumed = False

    def run(self, reader: T, writer: T) -> Found:
        while True:
            self._start()
            found = self.compare(reader, writer)
            broken = {pair for pair, item in self._compared.items() if item}
            if not self._assumed or broken <= self._broken:
                return _reported(found)
            self._broken |= broken

    def compare(self, reader: T, writer: T) -> Found:
        """All differences of a pair, nothing where the reader reads whatever was written."""
        pair = id(reader), id(writer)
        if pair in self._compared:
            return self._compared[pair]
        if pair in self._under_way:
            if pair in self._broken:
                return (_BROKEN_FURTHER_UP,)
            self._assumed = True
            return ()
        self._under_way.add(pair)
        with self._bounds.level():
            found = tuple(self.differences(reader, writer))
        self._under_way.remove(pair)
        self._compared[pair] = _reported(found)[:MAX_REPORTED] or found[:1]
        return self._compared[pair]

    def under(self, reader: T, writer: T, *steps: str) -> Iterable[SchemaDifference]:
        return [found.under(*steps) for found in self.compare(reader, writer)]

    def reads(self, reader: T, writer: T) -> bool:
        return not self.compare(reader, writer)

    @abstractmethod
    def differences(self, reader: T, writer: T) -> Iterable[SchemaDifference]:
        """Of two that were not compared yet, by `compare`, `under` and `reads` of what they hold.

        Both must live as long as the comparison: pairs are told apart by identity.
        """


def _reported(found: Found) -> Found:
    return tuple(item for item in found if item.error_type)
