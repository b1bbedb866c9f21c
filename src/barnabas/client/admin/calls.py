"""What all admin calls have in common: their time, and how they hand back one outcome an item."""

from collections.abc import Iterator, Mapping
from typing import Generic, TypeVar

from barnabas.client.admin.routes import Routes
from barnabas.client.cluster import Deadline
from barnabas.client.errors import KafkaError, KafkaException, told_by_broker
from barnabas.client.values import TopicPartition

K = TypeVar("K")
V = TypeVar("V")

UNSET = -1.0
"""A timeout that was not given: the client's own (`default.api.timeout.ms`) counts."""

_LONGEST_S = 3600.0


class Results(Mapping[K, V], Generic[K, V]):
    """What became of each item: `results[item]` is its value, or raises its KafkaException.

    `errors` has those that failed; `all()` gives every value, or raises the first failure.
    """

    __slots__ = ("_outcomes", "errors")

    def __init__(self, outcomes: Mapping[K, V | KafkaError]) -> None:
        self._outcomes = outcomes
        self.errors: dict[K, KafkaError] = {
            item: outcome for item, outcome in outcomes.items() if isinstance(outcome, KafkaError)
        }

    def all(self) -> dict[K, V]:
        return {item: self[item] for item in self}

    def __getitem__(self, item: K) -> V:
        outcome = self._outcomes[item]
        if isinstance(outcome, KafkaError):
            raise KafkaException(outcome)
        return outcome

    def __iter__(self) -> Iterator[K]:
        return iter(self._outcomes)

    def __len__(self) -> int:
        return len(self._outcomes)

    def __repr__(self) -> str:
        return f"Results({self._outcomes!r})"


class Calls:
    """One subject's calls. Arguments are checked at once, what follows is awaited."""

    def __init__(self, routes: Routes) -> None:
        self._routes = routes

    def _deadline(self, request_timeout: float) -> Deadline:
        default_ms = self._routes.settings.default_api_timeout_ms
        return Deadline.after(_checked_ms("request_timeout", request_timeout, default_ms))

    @staticmethod
    def _wait_ms(operation_timeout: float, deadline: Deadline) -> int:
        """How long the broker may take until what was asked is done everywhere."""
        return _checked_ms("operation_timeout", operation_timeout, deadline.left_ms())


def outcome_of(code: int, message: str | None = None) -> KafkaError | None:
    """None if it went well."""
    return told_by_broker(code, message) if code else None


def raise_failure(code: int, message: str | None = None) -> None:
    """For answers that have one error for all."""
    if code:
        raise KafkaException(told_by_broker(code, message))


def require_list(name: str, items: object, kind: type, *, filled: bool = True) -> None:
    """TypeError unless it is a list of that kind; ValueError if it has to hold something."""
    if not isinstance(items, list):
        raise TypeError(f"{name} must be a list of {kind.__name__}, not {type(items).__name__}")
    for item in items:
        if not isinstance(item, kind):
            raise TypeError(f"{name} must hold {kind.__name__}, not {type(item).__name__}")
    if filled and not items:
        raise ValueError(f"{name} must hold at least one {kind.__name__}")


def require_partitions(name: str, partitions: object, *, filled: bool = True) -> None:
    """The same for partitions, which must not be negative."""
    require_list(name, partitions, TopicPartition, filled=filled)
    assert isinstance(partitions, list)
    for partition in partitions:
        if not partition.topic or partition.partition < 0:
            raise ValueError(f"{partition!r} names no partition")


def _checked_ms(name: str, timeout_s: float, default_ms: int) -> int:
    if timeout_s == UNSET:
        return default_ms
    if not 0 <= timeout_s <= _LONGEST_S:
        raise ValueError(f"{name} must be from 0 to {_LONGEST_S:.0f} seconds, not {timeout_s}")
    return round(timeout_s * 1000)
