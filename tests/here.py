"""Faults of the system's calls that befall a test, and not the brokers that others keep."""

import os
import threading
from collections.abc import Callable
from typing import Any


def here(name: str, fault: Callable[..., Any]) -> Callable[..., Any]:
    """The function of `os` as it is for everybody, but in the thread that asks for the fault."""
    real, thread = getattr(os, name), threading.get_ident()

    def call(*given: Any, **named: Any) -> Any:
        chosen = fault if threading.get_ident() == thread else real
        return chosen(*given, **named)

    return call
