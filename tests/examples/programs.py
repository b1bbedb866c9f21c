"""The programs of examples/, loaded as they are or with the import changed to confluent_kafka."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType

EXAMPLES = Path(__file__).parents[2] / "examples"
WORLDS = ("barnabas", "confluent_kafka")


def load(name: str, world: str) -> ModuleType:
    """A program as a module; its main() has not run."""
    path = EXAMPLES / f"{name}.py"
    module = ModuleType(f"{name}_with_{world}")
    module.__file__ = str(path)
    # Dataclasses look their own module up.
    sys.modules[module.__name__] = module
    exec(compile(ported(path.read_text(), world), str(path), "exec"), vars(module))
    if "WAIT_S" in vars(module):
        module.WAIT_S = 0.3  # type: ignore[attr-defined]
    return module


def ported(source: str, world: str) -> str:
    """Changing the import is the whole port."""
    return re.sub(r"^(from|import) barnabas\b", rf"\1 {world}", source, flags=re.MULTILINE)
