"""Names that a package offers and loads when they are first used.

Importing any module of a package runs its `__init__`. One that imported all it offers would make
everybody pay for what few need: a producer for the broker's settings, every pytest for a broker.

    if TYPE_CHECKING:
        from castle.gate import Gate
    else:
        __getattr__ = loading(__name__, {"castle.gate": ("Gate",)})

Type checkers see the first branch alone: a name that is not offered is an error to them.
"""

import sys
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import Any


def lazy_getattr(package: str, homes: Mapping[str, Iterable[str]]) -> Callable[[str], Any]:
    """The `__getattr__` of a package (PEP 562): `homes` has names by the modules they are in.

    A name may be offered under another, as `from ... import` would have it: "AioConsumer as
    Consumer".
    """
    offered: dict[str, tuple[str, str]] = {}
    for home, names in homes.items():
        for each in names:
            name, _, alias = each.partition(" as ")
            offered[alias or name] = home, name

    def load(name: str) -> Any:
        if name not in offered:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        home, own_name = offered[name]
        value = getattr(import_module(home), own_name)
        setattr(sys.modules[package], name, value)  # found there from now on
        return value

    return load
