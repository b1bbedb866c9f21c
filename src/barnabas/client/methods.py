"""Methods that are derived from a call: plain and asyncio clients share signature and docstring."""

import functools
import inspect
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
V = TypeVar("V")

_SELF = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)


def documented(
    method: Callable[P, V],
    call: Callable[..., Any],
    returns: Callable[[Any], Any] = lambda annotation: annotation,
) -> Callable[P, V]:
    """Gives a method the docstring and the parameters of a call, which has another first one.

    `returns` derives the return annotation of the method from that of the call.
    """
    functools.update_wrapper(method, call)
    signature = inspect.signature(call)
    _, *parameters = signature.parameters.values()
    returned = returns(signature.return_annotation)
    method.__annotations__ = call.__annotations__ | {"return": returned}
    vars(method)["__signature__"] = signature.replace(
        parameters=[_SELF, *parameters], return_annotation=returned
    )
    return method
