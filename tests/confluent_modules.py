"""Modules written for confluent_kafka, loaded with imports of barnabas."""

import importlib.util
import re
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

_CONFLUENT_IMPORT = re.compile(r"^(\s*)(from|import) confluent_kafka\b", re.MULTILINE)


def with_barnabas_imports(source: str) -> str:
    """Returns the source of a program for confluent_kafka with imports of barnabas."""
    return _CONFLUENT_IMPORT.sub(r"\1\2 barnabas", source)


def load_with_barnabas_imports(
    path: Path, name: str, siblings: dict[str, str] | None = None
) -> ModuleType:
    """Loads the module at the path under another name.

    `siblings` has the modules that it imports with changed imports too, and their new names.
    """
    source = with_barnabas_imports(path.read_text())
    for sibling, new_name in (siblings or {}).items():
        source = re.sub(rf"\bfrom {re.escape(sibling)} import", f"from {new_name} import", source)
    module = importlib.util.module_from_spec(ModuleSpec(name, None, origin=str(path)))
    module.__file__ = str(path)
    sys.modules[name] = module
    exec(compile(source, str(path), "exec"), vars(module))
    return module
