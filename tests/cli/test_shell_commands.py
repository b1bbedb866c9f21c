"""Printed commands work in the shell of the user as they are printed."""

import os
import shlex
import sys
from pathlib import Path

import pytest

from barnabas.cli.shell_commands import MAX_LINE_LENGTH, python_word, shell_command, wrapped


@pytest.fixture
def installation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The project of a user, who runs `.venv/bin/barnabas` there."""
    scripts = tmp_path / "project" / ".venv" / "bin"
    scripts.mkdir(parents=True)
    for name in "barnabas", "python", "kafka-topics.sh":
        (scripts / name).write_text("#!/bin/sh\n")
        (scripts / name).chmod(0o755)
    monkeypatch.chdir(tmp_path / "project")
    monkeypatch.setenv("PWD", str(tmp_path / "project"))
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.setattr(sys, "argv", [str(scripts / "barnabas"), "up"])
    monkeypatch.setattr(sys, "executable", str(scripts / "python"))
    return scripts


def test_a_command_that_is_not_on_the_path_is_relative_to_the_directory(
    installation: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert shell_command("barnabas", "up") == ".venv/bin/barnabas up"
    assert shell_command("kafka-topics.sh", "--list") == ".venv/bin/kafka-topics.sh --list"
    assert python_word() == ".venv/bin/python"
    monkeypatch.chdir(installation)
    monkeypatch.setenv("PWD", str(installation))
    assert shell_command("barnabas", "up") == "./barnabas up"


def test_a_command_outside_of_the_directory_has_its_path(
    installation: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    monkeypatch.setenv("PWD", str(elsewhere))
    assert shell_command("barnabas", "up") == f"{installation}/barnabas up"


def test_a_command_on_the_path_is_its_name(
    installation: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{installation}:{os.environ['PATH']}")
    assert shell_command("barnabas", "topics", "create", "a b") == "barnabas topics create 'a b'"
    assert python_word() == "python"


def test_another_installation_on_the_path_is_not_meant(
    installation: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "barnabas").write_text("#!/bin/sh\n")
    (other / "barnabas").chmod(0o755)
    monkeypatch.setenv("PATH", str(other))
    assert shell_command("barnabas") == ".venv/bin/barnabas"


def test_a_package_without_scripts_is_run_by_its_module(
    installation: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (installation / "barnabas").unlink()
    (installation / "kafka-topics.sh").unlink()
    assert shell_command("barnabas", "up") == ".venv/bin/python -m barnabas.cli up"
    assert shell_command("kafka-topics.sh") == ".venv/bin/python -m barnabas.cli.kafka kafka-topics"


def test_a_long_command_is_wrapped_so_that_it_can_be_pasted() -> None:
    command = shell_command("kafka-console-consumer.sh", *(["--property", "key=value"] * 10))
    lines = wrapped(command)
    assert max(map(len, lines)) <= MAX_LINE_LENGTH
    assert len(lines) > 1
    assert shlex.split("\n".join(lines).replace("\\\n", " ")) == shlex.split(command)
