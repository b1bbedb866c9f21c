"""Every test here runs twice: with the loops compiled, and with the same files as plain Python."""

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from barnabas.registry.columns import _framing
from barnabas.registry.columns.avro import _decode, _encode
from barnabas.registry.columns.json_text import _text

LOOPS = [_framing, _decode, _encode, _text]


def from_source(module: ModuleType) -> ModuleType:
    """The module as plain Python, as where Cython is not installed."""
    assert module.__file__ is not None
    path = Path(module.__file__).with_name(f"{module.__name__.rpartition('.')[2]}.py")
    spec = importlib.util.spec_from_file_location(f"plain{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    plain = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "cython", None)
        spec.loader.exec_module(plain)
    return plain


PLAIN = {module: from_source(module) for module in LOOPS}


@pytest.fixture(params=["compiled", "plain"], autouse=True, scope="module")
def loops(request: pytest.FixtureRequest) -> Iterator[str]:
    if request.param == "compiled" and not all(module.COMPILED for module in LOOPS):
        pytest.skip("the loops are not compiled here")
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "plain":
            for module, plain in PLAIN.items():
                for name in vars(plain):
                    if not name.startswith("_"):
                        patch.setattr(module, name, getattr(plain, name), raising=False)
        yield request.param
