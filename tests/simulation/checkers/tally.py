"""Counts what was answered, so that one sees what runs have reached, and what they have not."""

from collections import Counter
from typing import Any

from tests.simulation.events import Answered, GivenUp, ShardLoaded, TransactionEnded

from barnabas.wire.errors import ErrorCode


class Tally:
    """No promise of its own."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def see(self, event: Any, now_ms: int) -> None:
        match event:
            case Answered(exchange):
                name = type(exchange.request).__name__.removesuffix("Request")
                for code in sorted(_codes(exchange.response)):
                    self.counts[f"{name} {ErrorCode(code).name}"] += 1
            case GivenUp(exchange):
                self.counts[f"{type(exchange.request).__name__.removesuffix('Request')} -"] += 1
            case TransactionEnded(_, committed):
                self.counts[f"transactions {'committed' if committed else 'aborted'}"] += 1
            case ShardLoaded(topic):
                self.counts[f"loads of {topic}"] += 1


def _codes(struct: Any) -> set[int]:
    """Every error code anywhere in a response."""
    codes: set[int] = set()
    for name in struct.DECLARED:
        value = getattr(struct, name)
        if name.endswith("error_code"):
            codes.add(value)
        elif isinstance(value, list):
            for each in value:
                if hasattr(each, "DECLARED"):
                    codes |= _codes(each)
    return codes
