"""The outcomes of admin calls: one value or error for every item of a call."""

from collections.abc import Iterator, Mapping
from typing import Any, Generic, TypeVar

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


def error_of(result: Any) -> KafkaError | None:
    """Returns the error of a response, or of a part of one; None for the code NONE."""
    if not result.error_code:
        return None
    return broker_error(result.error_code, getattr(result, "error_message", None))


def raise_on_error(result: Any) -> None:
    """Raises the error of a response, or of a part of one, as a KafkaException."""
    if result.error_code:
        raise KafkaException(error_of(result))
