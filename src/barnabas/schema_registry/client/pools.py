"""urllib3, imported when something is first asked over HTTP."""

import base64
from importlib import import_module
from types import ModuleType

from barnabas.schemas.extra import needed_by


def urllib3() -> ModuleType:
    """The library, or one line about how to have it."""
    with needed_by("a schema registry's client"):
        return import_module("urllib3")


def basic_auth(name: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()
