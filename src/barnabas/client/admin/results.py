"""The outcomes of admin calls: one value or error for every item of a call."""

from collections.abc import Iterator, Mapping
from typing import Generic, TypeVar

from barnabas.client.errors import KafkaError, KafkaException, broker_error

K = TypeVar("K")
V = TypeVar("V")


class Results(Mapping[K, V], Generic[K, V]):
    """The outcomes of a call: `results[item]` returns the value of an item or raises its error.

    `errors` has the KafkaError of every item that failed; `all()` returns all values, or raises
    the first error.
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


def error_or_none(code: int, message: str | None = None) -> KafkaError | None:
    """Returns the KafkaError of an error code; None for the code NONE."""
    return broker_error(code, message) if code else None


def raise_on_error(code: int, message: str | None = None) -> None:
    """Raises the KafkaException of an error code, unless it is NONE."""
    if code:
        raise KafkaException(broker_error(code, message))
