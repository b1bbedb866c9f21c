"""Settings that no client knows: Java's clients tell of them and go on, and so do these commands.

Files of settings are passed around between programs, so they often hold more than clients need.
"""

import sys
from collections.abc import Mapping
from typing import TypeVar

Value = TypeVar("Value")


def pass_over_unknown(settings: Mapping[str, Value]) -> dict[str, Value]:
    """Those that a client takes; of each of the others a line on standard error."""
    from barnabas.client.settings.reading import unknown_name, worlds

    known = {}
    for name, value in settings.items():
        if worlds(name):
            known[name] = value
        else:
            print(f"WARN {unknown_name(name).args[0].str()}", file=sys.stderr)
    return known
