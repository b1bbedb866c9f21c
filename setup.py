"""Compiles the loops over records where a C compiler is there; without one they run as Python.

`BARNABAS_COMPILE` names the files to compile, separated by spaces. If it is not set, all are.
"""

import os
import shlex
import subprocess
import sysconfig
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.modified import newer_group

MARK = "# cython:"
"""How a file begins that is to be compiled."""

SHARED = "src/barnabas/_cyutility.c"
"""Cython's own code, which all compiled modules need. Compiling it once, not into each of them,
halves the time that they take."""

FLAGS = [
    "-O3",
    "-g0",  # debugging symbols take longest to compile
    "--param=inline-unit-growth=80",  # or a small file has its varints read by calls
]


class CompileModules(build_ext):
    """Compiles what changed, prints its progress, and stops at Ctrl-C."""

    def build_extensions(self) -> None:
        started = time.monotonic()
        for module, translated in zip(self.extensions, translate(self.extensions), strict=True):
            module.sources, module.depends = translated.sources, translated.depends
        outdated = [module for module in self.extensions if self.is_outdated(module)]
        if outdated:
            noun = "module" if len(outdated) == 1 else "modules"
            print(f"Compiling {len(outdated)} {noun}:", end="", flush=True)
            self.compile(outdated)
            print(f". Compiled in {time.monotonic() - started:.0f} s.")

    def is_outdated(self, module: Extension) -> bool:
        sources = [*module.sources, *module.depends]
        return bool(self.force or newer_group(sources, self.get_ext_fullpath(module.name)))

    def compile(self, modules: list[Extension]) -> None:
        with ThreadPoolExecutor(os.cpu_count()) as executor:
            futures = [executor.submit(self.build_extension, module) for module in modules]
            try:
                for number, future in enumerate(as_completed(futures), 1):
                    future.result()
                    print(f" {number}", end="", flush=True)
            except BaseException:
                executor.shutdown(cancel_futures=True)
                raise


def translate(modules: list[Extension]) -> list[Extension]:
    """Returns the modules in the same order, with C files as sources."""
    from Cython.Build import cythonize

    return cythonize(
        modules,
        language_level=3,
        build_dir="build/cython",  # what is in src is packed: the C files stay out of it
        shared_utility_qualified_name=module_name(SHARED),
        quiet=True,
        # What only runs uncompiled is unreachable in compiled code.
        compiler_directives={"warn.unreachable": False},
    )


def extensions() -> list[Extension]:
    files = os.environ["BARNABAS_COMPILE"].split() if "BARNABAS_COMPILE" in os.environ else marked()
    if not files:
        return []
    if not can_compile():
        print(
            "No C compiler, or no headers of Python (on Debian: apt-get install gcc python3-dev): "
            "the loops over records will run as plain Python, more slowly."
        )
        return []
    return [
        Extension(module_name(path), [path], depends=["setup.py"], extra_compile_args=FLAGS)
        for path in [*files, SHARED]
    ]


def marked() -> list[str]:
    files = sorted(Path("src").rglob("_*.py"))
    return [str(path) for path in files if path.read_text().startswith(MARK)]


def can_compile() -> bool:
    """Whether there is a C compiler, and Python's headers for it."""
    compiler = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")
    headers = f"-I{sysconfig.get_path('include')}"
    try:
        checked = subprocess.run(
            [*compiler, headers, "-fsyntax-only", "-x", "c", "-"],
            input=b"#include <Python.h>",
            capture_output=True,
        )
    except OSError:
        return False
    return checked.returncode == 0


def module_name(path: str) -> str:
    return path.removeprefix("src/").rpartition(".")[0].replace("/", ".")


setup(ext_modules=extensions(), cmdclass={"build_ext": CompileModules})
