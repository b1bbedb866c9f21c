"""What Spark needs of a machine, looked at before it is started: one line says what is wrong.

Started without it, Spark fails with a stack trace out of the gateway, or in the first task.
"""

import os
import re
import shutil
import subprocess
from importlib.metadata import PackageNotFoundError, version

OLDEST_JAVA = 17
JAVA_ANSWERS_S = 30

Version = tuple[int, ...]

_INSTALL = "pip install 'barnabas[spark]'"
_BOUNDS: dict[str, tuple[Version, Version | None]] = {
    "pyspark": ((4, 2), (5,)),
    "pyarrow": ((18,), None),  # PySpark refuses older ones
    "pandas": ((2, 2), (3,)),  # PySpark has not learned pandas 3 yet
}
"""The oldest that will do, and the first that will not."""


class PrerequisiteError(RuntimeError):
    """Something is missing, or of a version that does not work. The message says what to do."""


def require_all() -> None:
    """PrerequisiteError for the first thing that keeps Spark from running here."""
    for package in _BOUNDS:
        require_package(package)
    require_java()


def require_package(name: str) -> None:
    oldest, first_too_new = _BOUNDS[name]
    wanted = f"{name} {_dotted(oldest)} or later"
    bounds = f"{name}>={_dotted(oldest)}"
    if first_too_new is not None:
        wanted += f", before {_dotted(first_too_new)}"
        bounds += f",<{_dotted(first_too_new)}"
    try:
        found = version(name)
    except PackageNotFoundError:
        raise PrerequisiteError(f"Spark needs {wanted}, which is not here: {_INSTALL}") from None
    if oldest <= _parsed(found) and (first_too_new is None or _parsed(found) < first_too_new):
        return
    raise PrerequisiteError(
        f"Spark needs {wanted}, and {found} is installed: pip install '{bounds}'"
    )


def require_java() -> None:
    """Of $JAVA_HOME, or else of the PATH: where Spark looks."""
    home = os.environ.get("JAVA_HOME")
    java = os.path.join(home, "bin", "java") if home else "java"  # noqa: PTH118
    where = f"JAVA_HOME={home}" if home else "the PATH"
    advice = "install Java 17 or 21 (on Debian: apt-get install openjdk-17-jre-headless)"
    if home:
        advice += ", or set JAVA_HOME to it"
    if shutil.which(java) is None:
        raise PrerequisiteError(f"Spark needs Java, and there is none at {where}: {advice}.")
    number = _java_version(java)
    if number is None:
        raise PrerequisiteError(f"`{java} -version` does not tell its version: {advice}.")
    if number < OLDEST_JAVA:
        raise PrerequisiteError(
            f"Spark needs Java {OLDEST_JAVA} or later, and that of {where} is {number}: {advice}."
        )


def _java_version(java: str) -> int | None:
    """17 of `openjdk version "17.0.15"`, 8 of `java version "1.8.0_402"`."""
    try:
        done = subprocess.run(
            [java, "-version"], capture_output=True, text=True, timeout=JAVA_ANSWERS_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r'version "(?:1\.)?(\d+)', done.stderr + done.stdout)
    return int(found[1]) if found else None


def _parsed(text: str) -> Version:
    """The release; 4.2.0.dev1 counts as 4.2.0."""
    found = re.match(r"\d+(?:\.\d+)*", text)
    return tuple(map(int, found[0].split("."))) if found else ()


def _dotted(number: Version) -> str:
    return ".".join(map(str, number))
