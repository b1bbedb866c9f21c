"""Counts responses by error code, which shows the cases that runs reach."""

from collections import Counter
from typing import Any

from tests.simulation.coordinator.events import Abandoned, Responded, ShardLoaded, TransactionEnded

from barnabas.wire.errors import ErrorCode


class ResponseCounts:
    """Checks no promise."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def on_event(self, event: Any, now_ms: int) -> None:
        match event:
            case Responded(sent):
                name = type(sent.request).__name__.removesuffix("Request")
                for code in sorted(_codes(sent.response)):
                    self.counts[f"{name} {ErrorCode(code).name}"] += 1
            case Abandoned(sent):
                self.counts[f"{type(sent.request).__name__.removesuffix('Request')} -"] += 1
            case TransactionEnded(_, committed):
                self.counts[f"transactions {'committed' if committed else 'aborted'}"] += 1
            case ShardLoaded(topic):
                self.counts[f"loads of {topic}"] += 1


def _codes(struct: Any) -> set[int]:
    """Returns all error codes in a response."""
    codes: set[int] = set()
    for name in struct.DECLARED:
        value = getattr(struct, name)
        if name.endswith("error_code"):
            codes.add(value)
        elif isinstance(value, list):
            for item in value:
                if hasattr(item, "DECLARED"):
                    codes |= _codes(item)
    return codes
