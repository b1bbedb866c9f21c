"""Compiles the loops over records where a C compiler is there; without one they run as Python."""

import os
from pathlib import Path

from setuptools import Extension, setup

MARK = "# cython:"
"""How a file begins that is to be compiled."""


def extensions() -> list[Extension]:
    if os.environ.get("BARNABAS_PURE_PYTHON"):
        return []
    from Cython.Build import cythonize

    modules = cythonize(
        [
            Extension(
                path.removeprefix("src/").removesuffix(".py").replace("/", "."),
                [path],
                extra_compile_args=["-O3", "-g0"],  # debugging symbols take longest to compile
            )
            for path in marked()
        ],
        language_level=3,
        build_dir="build/cython",  # what is in src is packed: the C files stay out of it
    )
    for module in modules:
        module.optional = True  # a missing compiler is a warning, not an error
    return modules


def marked() -> list[str]:
    files = sorted(Path("src").rglob("_*.py"))
    return [str(path) for path in files if path.read_text().startswith(MARK)]


setup(ext_modules=extensions(), options={"build_ext": {"parallel": os.cpu_count()}})
