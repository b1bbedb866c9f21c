"""Lazy imports: the names of a package are loaded when they are first used.

Importing any module of a package runs its `__init__`. If that imported all public names, every user
would pay for what few need: a producer for the broker's settings, every pytest for a broker.

    if TYPE_CHECKING:
        from castle.gate import Gate
    else:
        __getattr__ = lazy_getattr(__name__, {"castle.gate": ("Gate",)})

Type checkers see the first branch only: a name that it lacks is an error to them.
"""

import sys
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import Any


def lazy_getattr(package: str, modules: Mapping[str, Iterable[str]]) -> Callable[[str], Any]:
    """Returns the `__getattr__` of a package (PEP 562) for names by their modules.

    A name may have an alias, as in `from ... import`: "AioConsumer as Consumer".
    """
    origins: dict[str, tuple[str, str]] = {}
    for module, names in modules.items():
        for entry in names:
            name, _, alias = entry.partition(" as ")
            origins[alias or name] = module, name

    def load(name: str) -> Any:
        if name not in origins:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module, original = origins[name]
        value = getattr(import_module(module), original)
        setattr(sys.modules[package], name, value)  # found without this function from now on
        return value

    return load
