"""Compiles the loops over records where a C compiler is there; without one they run as Python."""

import os

from setuptools import Extension, setup

COMPILED = ["src/barnabas/wire/records/_loops.py", "src/barnabas/wire/records/_encoding.py"]


def extensions() -> list[Extension]:
    if os.environ.get("BARNABAS_PURE_PYTHON"):
        return []
    try:
        from Cython.Build import cythonize
    except ImportError:
        return []
    modules = [
        Extension(
            path.removeprefix("src/").removesuffix(".py").replace("/", "."),
            [path],
            optional=True,  # a missing compiler is a warning, not an error
            extra_compile_args=["-O3"],
        )
        for path in COMPILED
    ]
    return cythonize(modules, language_level=3)


setup(ext_modules=extensions())
