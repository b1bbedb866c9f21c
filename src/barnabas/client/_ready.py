# cython: language_level=3
"""An awaitable that is done already: without a turn of the loop, a future or a coroutine."""

from __future__ import annotations

try:
    import cython

    if not cython.compiled:  # Cython's own pure-Python shim is many times slower than ours
        raise ImportError
except ImportError:
    from barnabas.wire.records import _uncompiled as cython

COMPILED: bool = cython.compiled


@cython.final
@cython.freelist(8)
@cython.cclass
class Ready:
    """Returns its result when it is awaited; asyncio can make a task of it too."""

    def __init__(self, result: object) -> None:
        self.result = result

    def __await__(self) -> object:
        return self

    def __iter__(self) -> object:
        return self

    def __next__(self) -> object:
        raise StopIteration(self.result)

    # The methods of a coroutine

    def send(self, _value: object) -> object:
        raise StopIteration(self.result)

    def throw(self, *raised: object) -> object:
        raise raised[0]

    def close(self) -> None:
        pass
