"""A cache of bounded size: the least recently used entry is evicted first."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class LruCache(Generic[K, V]):
    """At most `capacity` values by key. An entry that is not valid any more counts as missing."""

    def __init__(
        self,
        capacity: int,
        *,
        on_evict: Callable[[V], object] = lambda _: None,
        is_valid: Callable[[V], bool] = lambda _: True,
    ) -> None:
        self._capacity = capacity
        self._on_evict = on_evict
        self._is_valid = is_valid
        self._values: OrderedDict[K, V] = OrderedDict()

    def get(self, key: K) -> V | None:
        """Returns the value of a key, or None."""
        if key not in self._values:
            return None
        if not self._is_valid(self._values[key]):
            del self._values[key]
            return None
        self._values.move_to_end(key)
        return self._values[key]

    def get_or_create(self, key: K, create: Callable[[], V]) -> V:
        """Returns the value of a key; creates it first if it is missing."""
        if key not in self._values or not self._is_valid(self._values[key]):
            self.put(key, create())
        self._values.move_to_end(key)
        return self._values[key]

    def put(self, key: K, value: V) -> None:
        self._values[key] = value
        self._values.move_to_end(key)
        while len(self._values) > self._capacity:
            _, evicted = self._values.popitem(last=False)
            self._on_evict(evicted)

    def remove_if(self, matches: Callable[[K], bool]) -> None:
        """Removes the entries whose key matches, without `on_evict`."""
        for key in [key for key in self._values if matches(key)]:
            del self._values[key]

    def __len__(self) -> int:
        return len(self._values)
