"""Loads a module that was written for confluent_kafka with nothing but its imports changed."""

import importlib.util
import re
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

_THEIRS = re.compile(r"^(\s*)(from|import) confluent_kafka\b", re.MULTILINE)


def changed(source: str) -> str:
    """The source of a program for confluent_kafka as one for barnabas."""
    return _THEIRS.sub(r"\1\2 barnabas", source)


def load_changed(path: Path, name: str, siblings: dict[str, str] | None = None) -> ModuleType:
    """The module at the path, under another name.

    `siblings` are the modules that it imports and that are to be taken changed as well, with the
    names that those have been loaded by.
    """
    source = changed(path.read_text())
    for sibling, changed_name in (siblings or {}).items():
        source = re.sub(
            rf"\bfrom {re.escape(sibling)} import", f"from {changed_name} import", source
        )
    module = importlib.util.module_from_spec(ModuleSpec(name, None, origin=str(path)))
    module.__file__ = str(path)
    sys.modules[name] = module
    exec(compile(source, str(path), "exec"), vars(module))
    return module
