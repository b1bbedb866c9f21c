"""The compiled files as the Python they are, as where there was no compiler."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest


def from_source(compiled: ModuleType, **replaced: ModuleType) -> ModuleType:
    """The module as plain Python; it imports those in `replaced` instead of the compiled ones."""
    name = compiled.__name__
    path = Path(str(compiled.__file__)).with_name(f"{name.rpartition('.')[2]}.py")
    path = path if path.exists() else Path(str(compiled.__file__))
    spec = importlib.util.spec_from_file_location(f"plain{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    plain = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "cython", None)
        for other in replaced.values():
            patch.setitem(sys.modules, other.__name__, other)
        spec.loader.exec_module(plain)
    return plain
