"""`make wheel` builds what a release would publish: it installs and runs without a compiler."""

import configparser
import os
import re
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.packaging.make import ROOT, make
from tests.wait import wait_until

SOURCES = ROOT / "src"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
SUFFIXES = {".py", ".pyi", ".pxd", ".typed"}

PRODUCE_AND_CONSUME = """
import sys
from barnabas import Consumer, Producer
from barnabas.client.producer import _accumulator
from barnabas.wire.records import _loops

producer = Producer({"bootstrap.servers": sys.argv[1]})
producer.produce("hello", key="k", value="world")
assert producer.flush(60) == 0
consumer = Consumer(
    {"bootstrap.servers": sys.argv[1], "group.id": "g", "auto.offset.reset": "earliest"}
)
consumer.subscribe(["hello"])
message = consumer.poll(60)
print(message.key(), message.value())
consumer.close()
print(_accumulator.__file__)
print(_loops.__file__)
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from what is compiled already; the tools for it are in the environment of the tests."""
    directory = tmp_path_factory.mktemp("dist")
    installed = [f"--old-file=.venv/{stamp}" for stamp in (".runtime", ".release", ".compiled")]
    make(*installed, "wheel", f"DIST={directory}")
    (built,) = directory.iterdir()
    return built


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment with the wheel and its dependencies only."""
    directory = tmp_path_factory.mktemp("environment")
    venv.create(directory, symlinks=True)
    run(
        *(sys.executable, "-m", "pip", "--python", directory / "bin/python"),
        *("--quiet", "--disable-pip-version-check", "install", wheel),
        environment=directory,
    )
    return directory


@pytest.fixture
def bootstrap(environment: Path, tmp_path: Path) -> Iterator[str]:
    """A broker, started by the command that the wheel installs."""
    log = tmp_path / "broker.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [environment / "bin/barnabas", "up", "--port", "0", "--dir", tmp_path / "data"],
            env=without_compiler(environment),
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        served = re.compile(r"serves Kafka clients on (\S+)\.")
        wait_until(lambda: served.search(log.read_text()) or process.poll() is not None)
        found = served.search(log.read_text())
        assert found, log.read_text()
        yield found[1]
    finally:
        process.terminate()
        process.wait(60)


def run(*command: str | Path, environment: Path) -> str:
    result = subprocess.run(
        command,
        env=without_compiler(environment),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert result.returncode == 0, result.stdout
    return result.stdout


def without_compiler(environment: Path) -> dict[str, str]:
    """Only the commands of the environment are on the PATH, and this tree is not imported."""
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return inherited | {"PATH": str(environment / "bin"), "CC": "/bin/false"}


def source_names() -> set[str]:
    files = (path for path in SOURCES.rglob("*") if path.suffix in SUFFIXES)
    return {str(path.relative_to(SOURCES)) for path in files}


def test_the_wheel_has_every_source_each_compiled_module_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if not name.endswith("/")}
    packed = {name for name in names if ".dist-info/" not in name}
    libraries = {name for name in packed if name.endswith(".so")}
    assert packed - libraries == source_names()
    compiled = {name.partition(".")[0] + ".py" for name in libraries}
    marked = {name for name in source_names() if is_compiled(name)}
    assert compiled == marked | {"barnabas/_cyutility.py"}


def is_compiled(name: str) -> bool:
    return name.endswith(".py") and (SOURCES / name).read_text().startswith("# cython:")


def test_the_wheel_is_for_any_common_linux(wheel: Path) -> None:
    assert "-manylinux" in wheel.name


def test_the_wheel_declares_the_commands_and_the_pytest_plugin(wheel: Path) -> None:
    declared = configparser.ConfigParser(delimiters="=")
    declared.optionxform = str
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith("/entry_points.txt"))
        declared.read_string(archive.read(name).decode())
    assert dict(declared["console_scripts"]) == PROJECT["scripts"]
    assert dict(declared["pytest11"]) == PROJECT["entry-points"]["pytest11"]


def test_the_wheel_has_the_license_that_it_declares(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith("/licenses/LICENSE"))
        text = archive.read(name).decode()
    assert PROJECT["license"] == "Apache-2.0"
    assert "Apache License\n                           Version 2.0, January 2004\n" in text


def test_an_empty_environment_without_a_compiler_produces_and_consumes(
    environment: Path, bootstrap: str
) -> None:
    printed = run(
        *(environment / "bin/python", "-c", PRODUCE_AND_CONSUME, bootstrap), environment=environment
    )
    received, *modules = printed.splitlines()
    assert received == "b'k' b'world'"
    assert all(module.startswith(str(environment)) for module in modules)
    assert all(module.endswith(".so") for module in modules)


def test_a_source_distribution_has_what_compiling_needs(tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "setup.py", "--quiet", "sdist", "--dist-dir", tmp_path],
        cwd=ROOT,
        check=True,
        stderr=subprocess.DEVNULL,
    )
    (built,) = tmp_path.iterdir()
    with tarfile.open(built) as archive:
        names = {member.name.partition("/")[2] for member in archive if member.isfile()}
    assert {"setup.py", "pyproject.toml", "README.md", "LICENSE"} <= names
    packed = {name.removeprefix("src/") for name in names if name.startswith("src/barnabas/")}
    assert packed == {name for name in source_names() if name.startswith("barnabas/")}
    assert not [name for name in names if name.endswith((".c", ".so"))]
