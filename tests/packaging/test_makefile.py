"""What the targets of the Makefile install, compile and run."""

import os
import re
import subprocess
import sys
import tomllib

import pytest
from tests.packaging.make import ROOT, make

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]


def dry_run(*arguments: str) -> str:
    """What make would run in a fresh clone."""
    return make("--dry-run", "--always-make", *arguments)


def extras_installed(commands: str) -> list[str]:
    return re.findall(r"--editable '\.\[(\w+)\]'", commands)


def test_run_installs_no_spark_and_no_test_tools() -> None:
    assert extras_installed(dry_run("run")) == ["registry"]
    installed = {re.split(r"\W", name)[0] for name in PROJECT["dependencies"] + EXTRAS["registry"]}
    assert not installed & {"pyspark", "pandas", "pyarrow", "pytest", "hypothesis", "confluent"}


@pytest.mark.parametrize("target", ["test", "demo", "check"])
def test_other_targets_install_what_they_need_on_top_of_run(target: str) -> None:
    assert extras_installed(dry_run(target)) == ["registry", "dev"]


def test_spark_installs_no_test_tools_and_compiles_everything() -> None:
    commands = dry_run("spark")
    assert extras_installed(commands) == ["registry", "spark"]
    assert "setup.py --quiet build_ext --inplace" in commands
    assert 'BARNABAS_COMPILE="' not in commands


def test_run_compiles_only_what_a_broker_its_clients_and_the_registry_load() -> None:
    files = re.findall(r'BARNABAS_COMPILE="(.*)"', dry_run("run"))[0].split()
    assert "src/barnabas/wire/records/_loops.py" in files
    assert not [file for file in files if "/columns/" in file]
    assert all((ROOT / file).read_text().startswith("# cython:") for file in files)


def test_run_passes_ports_and_data_directory_to_the_broker() -> None:
    command = dry_run("run", "PORT=1", "DATA=d", "REGISTRY_PORT=2", "METRICS_PORT=3").splitlines()
    arguments = command[-1].partition("barnabas ")[2].split()
    expected = "up --port 1 --dir d --registry-port 2 --metrics-port 3"
    assert arguments == expected.split()


def test_run_leaves_the_ports_of_registry_and_metrics_to_their_defaults() -> None:
    assert "-port" not in dry_run("run").splitlines()[-1].replace("--port 9092", "")


def test_help_describes_every_target() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    described = set(re.findall(r"make ([a-z-]+) ", make("help")))
    assert described == targets - {"java", "peers"}  # these only check that something is there


def test_without_a_compiler_the_build_says_so_and_compiles_nothing() -> None:
    result = subprocess.run(
        [sys.executable, "setup.py", "--quiet", "build_ext", "--inplace"],
        cwd=ROOT,
        env=os.environ | {"CC": "/bin/false"},
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("No C compiler")
    assert "apt-get install gcc python3-dev" in result.stdout
    assert "Compiling" not in result.stdout
