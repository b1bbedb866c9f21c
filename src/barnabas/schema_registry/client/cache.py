"""The cache of a registry client: entries belong to a subject, and may expire."""

import time
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Generic, TypeVar

from barnabas.client.lru_cache import LruCache

V = TypeVar("V")
Key = tuple[Hashable, ...]


class SubjectCache(Generic[V]):
    """Values by keys that begin with a subject. Thread-safe."""

    def __init__(
        self,
        capacity: int,
        ttl_s: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock = clock
        self._lock = Lock()
        self._entries: LruCache[Key, tuple[V, float]] = LruCache(
            capacity, is_valid=lambda entry: ttl_s is None or clock() - entry[1] < ttl_s
        )

    def get(self, *key: Hashable) -> V | None:
        with self._lock:
            entry = self._entries.get(key)
        return None if entry is None else entry[0]

    def put(self, value: V, *key: Hashable) -> V:
        """Caches the value, and returns it."""
        with self._lock:
            self._entries.put(key, (value, self._clock()))
        return value

    def remove_subject(self, subject: str) -> None:
        with self._lock:
            self._entries.remove_if(lambda key: key[0] == subject)

    def clear(self) -> None:
        with self._lock:
            self._entries.remove_if(lambda _: True)

    def __len__(self) -> int:
        return len(self._entries)
