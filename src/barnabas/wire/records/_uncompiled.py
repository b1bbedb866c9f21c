"""A replacement of the `cython` module, to run compiled files as plain Python.

Types occur in annotations, which are never evaluated, or name the members of a struct.
"""

from collections import namedtuple
from collections.abc import Callable
from typing import Any, TypeVar

Decorated = TypeVar("Decorated", bound=Callable[..., Any])

compiled = False
longlong = ulonglong = Py_ssize_t = int


def struct(**members: type) -> type[tuple[Any, ...]]:
    return namedtuple("struct", members)


def cfunc(function: Decorated) -> Decorated:
    return function


cclass = ccall = final = inline = no_gc = cfunc


class _NoGil:
    """Both a decorator and a context manager."""

    def __call__(self, function: Decorated) -> Decorated:
        return function

    def __enter__(self) -> None: ...

    def __exit__(self, *_raised: object) -> None: ...


nogil = _NoGil()


def exceptval(*_value: int, check: bool = True) -> Callable[[Decorated], Decorated]:
    return cfunc


def freelist(_size: int) -> Callable[[Decorated], Decorated]:
    return cfunc


def cast(_type: object, value: Any) -> Any:
    return value


def declare(_type: object, value: Any) -> Any:
    return value
