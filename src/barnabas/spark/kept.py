"""What a process keeps for the tasks that follow: Spark uses its Python processes again."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Kept(Generic[K, V]):
    """So many values at most; the one that was not used for longest makes room."""

    def __init__(
        self,
        most: int,
        *,
        let_go: Callable[[V], object] = lambda _: None,
        is_of_use: Callable[[V], bool] = lambda _: True,
    ) -> None:
        self._most = most
        self._let_go = let_go
        self._is_of_use = is_of_use
        self._values: OrderedDict[K, V] = OrderedDict()

    def get(self, key: K, make: Callable[[], V]) -> V:
        """What is kept under the key, made where there is nothing, or nothing of use."""
        if key not in self._values or not self._is_of_use(self._values[key]):
            self._values[key] = make()
        self._values.move_to_end(key)
        if len(self._values) > self._most:
            _, oldest = self._values.popitem(last=False)
            self._let_go(oldest)
        return self._values[key]
