"""What requests to registries and token endpoints share: urllib3, basic auth, retries."""

import base64
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from types import ModuleType

from barnabas.client.backoff import FULL_SPREAD, Backoff
from barnabas.schemas import extra_required_by


@dataclass(slots=True, frozen=True)
class RetryBackoff:
    retries: int
    wait_ms: float
    max_wait_ms: float

    def waits_s(self) -> Iterator[float]:
        """Yields the wait before each retry: exponential with jitter, so that clients which failed
        together do not retry together."""
        first_ms = min(self.wait_ms, self.max_wait_ms)
        backoff = Backoff(first_ms, self.max_wait_ms, spread=FULL_SPREAD)
        for _ in range(self.retries):
            yield backoff.next_ms() / 1000


def is_retriable(status: int) -> bool:
    """Returns whether the same request may succeed later."""
    return status in (408, 429, 500, 502, 503, 504)


def urllib3() -> ModuleType:
    """Imports urllib3, or raises an error that names the extra to install."""
    with extra_required_by("a schema registry's client"):
        return import_module("urllib3")


def basic_auth(name: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()
