"""What a client remembers, by subject: bounded, the least recently used goes first."""

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Generic, TypeVar

V = TypeVar("V")
Key = tuple[Hashable, ...]


class SubjectCache(Generic[V]):
    """Values by keys that begin with the subject they belong to; safe to share by threads."""

    def __init__(
        self,
        capacity: int,
        ttl_s: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._capacity = capacity
        self._ttl_s = ttl_s
        self._clock = clock
        self._lock = Lock()
        self._entries: OrderedDict[Key, tuple[V, float]] = OrderedDict()

    def get(self, *key: Hashable) -> V | None:
        with self._lock:
            entry = self._entries.get(key)
            if entry is None:
                return None
            value, since = entry
            if self._ttl_s is not None and self._clock() - since >= self._ttl_s:
                del self._entries[key]
                return None
            self._entries.move_to_end(key)
            return value

    def put(self, value: V, *key: Hashable) -> V:
        """Remember it, and hand it on."""
        with self._lock:
            self._entries[key] = value, self._clock()
            self._entries.move_to_end(key)
            while len(self._entries) > self._capacity:
                self._entries.popitem(last=False)
        return value

    def remove_subject(self, subject: str) -> None:
        with self._lock:
            for key in [key for key in self._entries if key[0] == subject]:
                del self._entries[key]

    def clear(self) -> None:
        with self._lock:
            self._entries.clear()

    def __len__(self) -> int:
        return len(self._entries)
