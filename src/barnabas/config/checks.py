"""Checks of values: each states which values are allowed and what is wrong with a value."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from barnabas.config.addresses import parse_endpoint, parse_voter


class Check:
    """Checks a value. `allowed` describes the allowed values to users."""

    __slots__ = ("allowed",)

    def __init__(self, allowed: str) -> None:
        self.allowed = allowed

    def find_problem(self, value: Any) -> str | None:
        """Returns what is wrong with a value, or None."""
        raise NotImplementedError


class Range(Check):
    """A number from `low` to `high`, both included, or without an upper bound."""

    __slots__ = ("_high", "_low")

    def __init__(self, low: float, high: float | None = None) -> None:
        self._low = low
        self._high = high
        super().__init__(f"[{low},...]" if high is None else f"[{low},...,{high}]")

    def find_problem(self, value: Any) -> str | None:
        if value is None:
            return "Value must be non-null"
        if value < self._low:
            return f"Value must be at least {self._low}"
        if self._high is not None and value > self._high:
            return f"Value must be no more than {self._high}"
        return None


class OneOf(Check):
    __slots__ = ("_ignore_case", "_values")

    def __init__(self, *values: str, ignore_case: bool = False) -> None:
        self._values = values
        self._ignore_case = ignore_case
        listed = f"[{', '.join(values)}]"
        super().__init__(f"(case insensitive) {listed}" if ignore_case else listed)

    def find_problem(self, value: Any) -> str | None:
        if value in self._values:
            return None
        if self._ignore_case and value is not None:
            folded = value.casefold()
            if any(folded == allowed.casefold() for allowed in self._values):
                return None
        case = " (case insensitive)" if self._ignore_case else ""
        return f"String must be one of{case}: {', '.join(self._values)}"


class ListOf(Check):
    """A list without blank elements; if there are `values`, every element is one of them."""

    __slots__ = ("_may_be_empty", "_may_be_null", "_values")

    def __init__(self, *values: str, may_be_empty: bool = False, may_be_null: bool = False) -> None:
        self._values = values
        self._may_be_empty = may_be_empty
        self._may_be_null = may_be_null
        super().__init__(f"[{', '.join(values)}]" if values else "")

    def find_problem(self, value: Any) -> str | None:
        if value is None:
            return None if self._may_be_null else "Value must be non-null"
        if not value and not self._may_be_empty:
            valid = ", ".join(self._values) or "any"
            return f"Value must not be empty. Valid values include: {valid}"
        if "" in value:
            return "Values must not be empty strings"
        for element in value:
            if self._values and element not in self._values:
                return f"String must be one of: {', '.join(self._values)}, not {element}"
        return None


class NonEmpty(Check):
    """A string that is not blank, or no value."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__("non-empty string")

    def find_problem(self, value: Any) -> str | None:
        return "String must be non-empty" if value == "" else None


class NonNull(Check):
    __slots__ = ()

    def __init__(self) -> None:
        super().__init__("non-null string")

    def find_problem(self, value: Any) -> str | None:
        return "Value must be non-null" if value is None else None


class GzipLevel(Check):
    __slots__ = ()

    def __init__(self) -> None:
        super().__init__("[1,...,9] or -1")

    def find_problem(self, value: Any) -> str | None:
        if value == -1 or (value is not None and 1 <= value <= 9):
            return None
        return "Value must be between 1 and 9, or -1 for the codec's own default"


class ThrottledReplicas(Check):
    """An empty list, `*` for all replicas, or a list of partition:broker."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__("[partitionId]:[brokerId],[partitionId]:[brokerId],...")

    def find_problem(self, value: Any) -> str | None:
        if value is None:
            return "Value must be non-null"
        if value == ("*",) or all(map(_is_partition_and_broker, value)):
            return None
        return f"Value must be the literal '*' or a list of replicas: {self.allowed}"


class OffsetReset(Check):
    """One of `words`, or by_duration:<positive ISO 8601 duration>."""

    __slots__ = ("_words",)

    def __init__(self, *words: str) -> None:
        self._words = words
        super().__init__(f"[{', '.join(words)}, by_duration:PnDTnHnMn.nS]")

    def find_problem(self, value: Any) -> str | None:
        if value in self._words or (value is not None and _is_duration_reset(value)):
            return None
        return f"Value must be one of {self.allowed}"


class EndpointList(Check):
    """A list of host:port."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__("non-empty list")

    def find_problem(self, value: Any) -> str | None:
        return _first_problem(parse_endpoint, value)


class OptionalEndpoint(Check):
    """A host:port, or an empty string."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__("host:port or empty")

    def find_problem(self, value: Any) -> str | None:
        return _first_problem(parse_endpoint, [value] if value else [])


class VoterList(Check):
    """A list of id@host:port."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__("non-empty list")

    def find_problem(self, value: Any) -> str | None:
        return _first_problem(parse_voter, value)


def at_least(low: float) -> Range:
    return Range(low)


def between(low: float, high: float) -> Range:
    return Range(low, high)


def _first_problem(parse: Callable[[str], object], elements: Iterable[str] | None) -> str | None:
    if elements is None:
        return "Value must be non-null"
    for element in elements:
        try:
            parse(element)
        except ValueError as problem:
            return str(problem)
    return None


def _is_partition_and_broker(element: str) -> bool:
    partition, colon, broker = element.partition(":")
    return bool(colon) and partition.isdigit() and broker.isdigit()


def _is_duration_reset(value: str) -> bool:
    import re

    kind, _, duration = value.partition(":")
    days = r"(\d+D)?"
    time = r"(T(?=\d)(\d+H)?(\d+M)?(\d+(\.\d+)?S)?)?"
    return kind == "by_duration" and bool(re.fullmatch(rf"P(?=[\dT]){days}{time}", duration, re.I))
