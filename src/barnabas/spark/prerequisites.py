"""Checks Java and the Python packages before Spark starts, so that one line says what is missing.

Without the checks, Spark fails with a stack trace from its gateway, or in the first task.
"""

import logging
import os
import re
import shutil
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec

MIN_JAVA_VERSION = 17
JAVA_TIMEOUT_S = 30
PYTHON_TIMEOUT_S = 30

Version = tuple[int, ...]

_INSTALL = "pip install 'barnabas[spark]'"
_BOUNDS: dict[str, tuple[Version, Version | None]] = {
    "pyspark": ((4, 2), (5,)),
    "pyarrow": ((18,), None),  # PySpark rejects older versions
    "pandas": ((2, 2), (3,)),  # PySpark does not support pandas 3 yet
}
"""The oldest supported version, and the first unsupported one after it."""


log = logging.getLogger("barnabas.spark")


class PrerequisiteError(RuntimeError):
    """Java or a package is missing or has an unsupported version. The message says what to do."""


def require_all() -> None:
    """Raises PrerequisiteError for the first prerequisite that is not met."""
    for package in _BOUNDS:
        require_package(package)
    require_java()


def warn_if_uncompiled() -> None:
    """Logs that columns are slow: `make run` compiles only what brokers and clients load."""
    module = find_spec("barnabas.columns._bits")
    if module is not None and (module.origin or "").endswith(".py"):
        log.warning(
            "barnabas.columns is not compiled: typed columns take two to three times as long. In a "
            "clone, run `make spark`. Elsewhere, install a C compiler, then reinstall barnabas."
        )


def require_package(name: str) -> None:
    oldest, first_unsupported = _BOUNDS[name]
    requirement = f"{name} {_format_version(oldest)} or later"
    bounds = f"{name}>={_format_version(oldest)}"
    if first_unsupported is not None:
        requirement += f", before {_format_version(first_unsupported)}"
        bounds += f",<{_format_version(first_unsupported)}"
    try:
        installed = version(name)
    except PackageNotFoundError:
        raise PrerequisiteError(
            f"Spark needs {requirement}, which is not installed: {_INSTALL}"
        ) from None
    if oldest <= _release(installed) and (
        first_unsupported is None or _release(installed) < first_unsupported
    ):
        return
    raise PrerequisiteError(
        f"Spark needs {requirement}, but {installed} is installed: pip install '{bounds}'"
    )


def require_java() -> None:
    """Checks Java of $JAVA_HOME or else of the PATH, as Spark does."""
    java_home = os.environ.get("JAVA_HOME")
    java = os.path.join(java_home, "bin", "java") if java_home else "java"  # noqa: PTH118
    origin = f"JAVA_HOME={java_home}" if java_home else "the PATH"
    advice = "install Java 17 or 21 (on Debian: apt-get install openjdk-17-jre-headless)"
    if java_home:
        advice += ", or set JAVA_HOME to it"
    if shutil.which(java) is None:
        raise PrerequisiteError(f"Spark needs Java, but {origin} has none: {advice}.")
    number = _java_version(java)
    if number is None:
        raise PrerequisiteError(f"`{java} -version` does not print its version: {advice}.")
    if number < MIN_JAVA_VERSION:
        raise PrerequisiteError(
            f"Spark needs Java {MIN_JAVA_VERSION} or later, but {origin} has {number}: {advice}."
        )


def has_barnabas(python: str) -> bool:
    """Whether that Python finds the package with the data source, as Spark looks for it."""
    if shutil.which(python) == sys.executable:
        return True
    found = "import sys, importlib.util as u; sys.exit(u.find_spec('pyspark_barnabas') is None)"
    try:
        process = subprocess.run(
            [python, "-c", found], capture_output=True, timeout=PYTHON_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return process.returncode == 0


def _java_version(java: str) -> int | None:
    """Returns 17 for `openjdk version "17.0.15"`, 8 for `java version "1.8.0_402"`."""
    try:
        process = subprocess.run(
            [java, "-version"], capture_output=True, text=True, timeout=JAVA_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.search(r'version "(?:1\.)?(\d+)', process.stderr + process.stdout)
    return int(match[1]) if match else None


def _release(text: str) -> Version:
    """Returns the release; that of 4.2.0.dev1 is 4.2.0."""
    match = re.match(r"\d+(?:\.\d+)*", text)
    return tuple(map(int, match[0].split("."))) if match else ()


def _format_version(number: Version) -> str:
    return ".".join(map(str, number))
