# cython: language_level=3
"""What is awaited and is there already: no turn of the loop, no future, no coroutine."""

from __future__ import annotations

try:
    import cython

    if not cython.compiled:  # Cython's own stand-in for itself is many times slower than ours
        raise ImportError
except ImportError:
    from barnabas.wire.records import _uncompiled as cython

COMPILED: bool = cython.compiled


@cython.final
@cython.freelist(8)
@cython.cclass
class Ready:
    """Gives its result to whoever awaits it; a task can be made of it, too."""

    def __init__(self, result: object) -> None:
        self.result = result

    def __await__(self) -> object:
        return self

    def __iter__(self) -> object:
        return self

    def __next__(self) -> object:
        raise StopIteration(self.result)

    # As a coroutine has them

    def send(self, _value: object) -> object:
        raise StopIteration(self.result)

    def throw(self, *raised: object) -> object:
        raise raised[0]

    def close(self) -> None:
        pass
