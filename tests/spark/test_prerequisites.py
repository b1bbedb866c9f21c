"""What is missing is said in a line, with what to install, before Spark is started."""

import importlib.metadata
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.log_records import barnabas_log_lines

from barnabas.spark import prerequisites
from barnabas.spark.prerequisites import (
    PrerequisiteError,
    require_java,
    require_package,
    warn_if_uncompiled,
)


@pytest.fixture
def versions(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """What is installed, as far as the code under test can see."""
    installed: dict[str, str] = {}

    def version(name: str) -> str:
        if name not in installed:
            raise importlib.metadata.PackageNotFoundError(name)
        return installed[name]

    monkeypatch.setattr(prerequisites, "version", version)
    return installed


@pytest.mark.parametrize(
    ("package", "found"),
    [("pyspark", "4.2.0"), ("pyspark", "4.3.0.dev1"), ("pyarrow", "26.0.1"), ("pandas", "2.3.3")],
)
def test_a_supported_version_is_accepted(
    versions: dict[str, str], package: str, found: str
) -> None:
    versions[package] = found
    require_package(package)


@pytest.mark.parametrize(
    ("package", "found", "advice"),
    [
        ("pyspark", "4.1.9", "pip install 'pyspark>=4.2,<5'"),
        ("pyspark", "5.0", "pip install 'pyspark>=4.2,<5'"),
        ("pyarrow", "17.0.0", "pip install 'pyarrow>=18'"),
        ("pandas", "3.0.0", "pip install 'pandas>=2.2,<3'"),
    ],
)
def test_an_unsupported_version_is_named_with_what_to_install(
    versions: dict[str, str], package: str, found: str, advice: str
) -> None:
    versions[package] = found
    with pytest.raises(PrerequisiteError) as error:
        require_package(package)
    message = str(error.value)
    assert f"{found} is installed" in message
    assert message.endswith(advice)
    assert "\n" not in message


def test_a_missing_package_is_named(versions: dict[str, str]) -> None:
    with pytest.raises(PrerequisiteError, match=r"needs pyspark 4.2 or later.*not installed"):
        require_package("pyspark")


def java(home: Path, output: str) -> None:
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho '{output}' >&2\n")
    program.chmod(0o755)


@pytest.mark.parametrize(
    "output", ['openjdk version "17.0.15" 2025-04-15', 'openjdk version "21" 2023-09-19']
)
def test_java_of_java_home_is_accepted_if_it_is_new_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, output: str
) -> None:
    java(tmp_path, output)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    require_java()


@pytest.mark.parametrize(
    ("output", "message"),
    [
        ('java version "1.8.0_402"', "has 8:"),
        ('openjdk version "11.0.22" 2024-01-16', "has 11:"),
        ("no Java runtime present", "does not print its version"),
    ],
)
def test_java_that_is_too_old_is_named_with_its_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, output: str, message: str
) -> None:
    java(tmp_path, output)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(PrerequisiteError, match="install Java 17 or 21") as error:
        require_java()
    assert message in str(error.value)


def test_missing_java_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(PrerequisiteError, match="the PATH has none"):
        require_java()


@pytest.mark.parametrize(("file", "count"), [("_bits.py", 1), ("_bits.cpython-311.so", 0)])
def test_columns_that_are_not_compiled_have_a_warning_with_the_command(
    file: str, count: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    found = SimpleNamespace(origin=f"/columns/{file}")
    monkeypatch.setattr(prerequisites, "find_spec", lambda _: found)
    warn_if_uncompiled()
    assert ["`make spark`" in line for line in barnabas_log_lines(caplog)] == [True] * count
