"""Faults of system calls in one thread, which do not affect the brokers of other tests."""

import os
import threading
from collections.abc import Callable
from typing import Any


def fault_in_this_thread(name: str, fault: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a replacement of an `os` function that calls `fault` in this thread only."""
    real, thread = getattr(os, name), threading.get_ident()

    def call(*args: Any, **named: Any) -> Any:
        function = fault if threading.get_ident() == thread else real
        return function(*args, **named)

    return call
