"""Compiled modules loaded as plain Python, as without a compiler."""

import importlib.util
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

import pytest

_MARK = "# cython:"


class PlainModuleFinder(MetaPathFinder):
    """Finds the sources of compiled modules, in front of what they were compiled to."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        package, _, name = fullname.rpartition(".")
        if not package.startswith("barnabas") or not name.startswith("_"):
            return None
        for folder in path or ():
            source = Path(folder) / f"{name}.py"
            if source.exists() and source.read_text().startswith(_MARK):
                return importlib.util.spec_from_file_location(fullname, source)
        return None


def load_uncompiled(compiled: ModuleType, **replaced: ModuleType) -> ModuleType:
    """Loads the module as plain Python; it imports those in `replaced`."""
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


def compiled_and_plain(*modules: ModuleType) -> Callable[..., Iterator[str]]:
    """Returns a fixture that runs every test twice: with compiled modules, and as plain Python."""
    plain = {module: load_uncompiled(module) for module in modules}

    @pytest.fixture(params=["compiled", "plain"], autouse=True, scope="module")
    def loops(request: pytest.FixtureRequest) -> Iterator[str]:
        if request.param == "compiled" and not all(map(_is_compiled, modules)):
            pytest.skip("the modules are not compiled")
        with pytest.MonkeyPatch.context() as patch:
            if request.param == "plain":
                for module, source in plain.items():
                    for name in vars(source):
                        if not name.startswith("_"):
                            patch.setattr(module, name, getattr(source, name), raising=False)
            yield request.param

    return loops


def _is_compiled(module: ModuleType) -> bool:
    return not str(module.__file__).endswith(".py")


def run_as_plain_python(*arguments: str) -> None:
    """Runs tests in a process that has no compiled modules, and asserts that they pass."""
    ran = subprocess.run(
        [*(sys.executable, "-m", "pytest", "-q", "-n0", "-p", "tests.plain_modules"), *arguments],
        cwd=Path(__file__).parents[1],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTEST_XDIST_WORKER": ""},
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
