"""Random texts that match a regular expression, made for a whole column at once.

Literals, escapes, classes, groups, alternatives and quantifiers are supported. `*` and `+` repeat
up to `MAX_REPEATS` times.
"""

from __future__ import annotations

import string
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from barnabas.connect.errors import InvalidConfigError

MAX_REPEATS = 10

_CLASSES = {
    "d": string.digits,
    "w": string.ascii_letters + string.digits + "_",
    "s": " ",
}
_PRINTABLE = string.ascii_letters + string.digits + string.punctuation + " "
_CONTROLS = {"n": "\n", "t": "\t", "r": "\r"}


class TextPattern(ABC):
    @abstractmethod
    def generate(self, random: np.random.Generator, count: int) -> pa.StringArray: ...


@dataclass(slots=True, frozen=True)
class CharactersPattern(TextPattern):
    """One of several characters."""

    choices: str

    def generate(self, random: np.random.Generator, count: int) -> pa.StringArray:
        if len(self.choices) == 1:
            return pa.repeat(pa.scalar(self.choices), count)
        chosen = pa.array(random.integers(len(self.choices), size=count))
        return pa.array(list(self.choices)).take(chosen)


@dataclass(slots=True, frozen=True)
class ConcatenationPattern(TextPattern):
    parts: Sequence[TextPattern]

    def generate(self, random: np.random.Generator, count: int) -> pa.StringArray:
        if not self.parts:
            return pa.repeat(pa.scalar(""), count)
        arrays = [part.generate(random, count) for part in self.parts]
        return pc.binary_join_element_wise(*arrays, "")


@dataclass(slots=True, frozen=True)
class AlternativesPattern(TextPattern):
    parts: Sequence[TextPattern]

    def generate(self, random: np.random.Generator, count: int) -> pa.StringArray:
        chosen = pa.array(random.integers(len(self.parts), size=count))
        arrays = [part.generate(random, count) for part in self.parts]
        return pc.choose(chosen, *arrays)


@dataclass(slots=True, frozen=True)
class RepeatedPattern(TextPattern):
    part: TextPattern
    minimum: int
    maximum: int

    def generate(self, random: np.random.Generator, count: int) -> pa.StringArray:
        counts = pa.array(random.integers(self.minimum, self.maximum + 1, size=count))
        arrays = []
        for number in range(self.maximum):
            array = self.part.generate(random, count)
            if number >= self.minimum:
                array = pc.if_else(pc.greater(counts, number), array, "")
            arrays.append(array)
        if not arrays:
            return pa.repeat(pa.scalar(""), count)
        return pc.binary_join_element_wise(*arrays, "")


def parse_pattern(text: str) -> TextPattern:
    """Raises ConfigError for what is not supported."""
    return _Parser(text).parse()


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._position = 0

    def parse(self) -> TextPattern:
        pattern = self._alternatives()
        if self._position < len(self._text):
            raise self._error(f"unexpected '{self._text[self._position]}'")
        return pattern

    def _error(self, problem: str) -> InvalidConfigError:
        return InvalidConfigError(
            f"TextPattern '{self._text}' cannot be used to make texts: {problem}."
        )

    def _peek(self) -> str:
        return self._text[self._position : self._position + 1]

    def _next(self) -> str:
        character = self._peek()
        if not character:
            raise self._error("it ends too early")
        self._position += 1
        return character

    def _accept(self, character: str) -> bool:
        is_next = self._peek() == character
        self._position += is_next
        return is_next

    def _alternatives(self) -> TextPattern:
        parts = [self._sequence()]
        while self._accept("|"):
            parts.append(self._sequence())
        return parts[0] if len(parts) == 1 else AlternativesPattern(parts)

    def _sequence(self) -> TextPattern:
        parts = []
        while self._peek() not in ("", "|", ")"):
            if self._peek() in "^$":
                self._next()
                continue
            parts.append(self._quantified(self._atom()))
        return parts[0] if len(parts) == 1 else ConcatenationPattern(parts)

    def _atom(self) -> TextPattern:
        match self._next():
            case "(":
                if self._accept("?") and not self._accept(":"):
                    raise self._error("only (...) and (?:...) are supported")
                pattern = self._alternatives()
                if not self._accept(")"):
                    raise self._error("a parenthesis is not closed")
                return pattern
            case "[":
                return CharactersPattern(self._class())
            case ".":
                return CharactersPattern(_PRINTABLE)
            case "\\":
                return CharactersPattern(self._escape())
            case "*" | "+" | "?" | "{" as character:
                raise self._error(f"there is nothing before '{character}'")
            case character:
                return CharactersPattern(character)

    def _escape(self) -> str:
        character = self._next()
        if character in _CLASSES:
            return _CLASSES[character]
        if character.lower() in _CLASSES:
            return "".join(each for each in _PRINTABLE if each not in _CLASSES[character.lower()])
        return _CONTROLS.get(character, character)

    def _class(self) -> str:
        is_negated = self._accept("^")
        chosen = ""
        while not (chosen and self._peek() == "]"):
            first = self._next()
            options = self._escape() if first == "\\" else first
            if len(options) == 1 and self._peek() == "-" and self._text[self._position + 1] != "]":
                self._next()
                last = self._next()
                last = self._escape() if last == "\\" else last
                if last < options:
                    raise self._error(f"{options}-{last} is no range")
                options = "".join(map(chr, range(ord(options), ord(last) + 1)))
            chosen += options
        self._next()
        if is_negated:
            return "".join(each for each in _PRINTABLE if each not in chosen)
        return chosen

    def _quantified(self, atom: TextPattern) -> TextPattern:
        match self._peek():
            case "?":
                bounds = (0, 1)
            case "*":
                bounds = (0, MAX_REPEATS)
            case "+":
                bounds = (1, MAX_REPEATS)
            case "{":
                bounds = self._bounds()
            case _:
                return atom
        self._next()
        self._accept("?")  # how much is tried first has no effect
        return RepeatedPattern(atom, *bounds)

    def _bounds(self) -> tuple[int, int]:
        end = self._text.find("}", self._position)
        first, comma, last = self._text[self._position + 1 : end].partition(",")
        try:
            minimum = int(first or 0)
            maximum = int(last) if last else minimum + (MAX_REPEATS if comma else 0)
        except ValueError:
            raise self._error("a quantifier has no numbers") from None
        if end < 0 or not 0 <= minimum <= maximum <= 10_000:
            raise self._error("a quantifier is not in order")
        self._position = end
        return minimum, maximum
