"""Every command is a script under Kafka's name, helps, and starts without click or rich."""

import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import pytest
from tests.cli.kafka.conftest import Command

from barnabas.cli.kafka import COMMANDS

ROOT = Path(__file__).parents[3]
WITH_VERBS = {"kafka-cluster", "kafka-features", "kafka-metadata-quorum", "kafka-storage",
              "kafka-transactions"}  # fmt: skip
OWN_MANNER = {"kafka-e2e-latency", "kafka-metadata-shell", "kafka-producer-perf-test",
              "kafka-verifiable-consumer", "kafka-verifiable-producer"}  # fmt: skip


def test_every_command_is_installed_with_and_without_sh() -> None:
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    for name, module in COMMANDS.items():
        for script in name, f"{name}.sh":
            assert scripts[script] == f"barnabas.cli.kafka.{module}:main"
        assert callable(import_module(f"barnabas.cli.kafka.{module}").main)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_prints_help(run: Command, name: str) -> None:
    result = run(name, "--help")
    helped = result.out + result.err
    assert len(helped.splitlines()) > 3
    if name not in OWN_MANNER:
        assert result.status == (0 if name in WITH_VERBS else 1)
        assert bool(result.out) == (name in WITH_VERBS)


@pytest.mark.parametrize("name", sorted(set(COMMANDS) - WITH_VERBS - OWN_MANNER))
def test_every_command_prints_its_version(run: Command, name: str) -> None:
    assert run(name, "--version").out.startswith("4.3.1 (Barnabas ")


@pytest.mark.parametrize("name", sorted(set(COMMANDS) - OWN_MANNER))
def test_an_unknown_option_exits_with_status_1(run: Command, name: str) -> None:
    result = run(name, "--no-such-option")
    assert result.status == 1
    assert result.out == ""
    assert result.err


def test_a_command_imports_neither_click_nor_rich_nor_the_broker() -> None:
    code = (
        "import sys; from barnabas.cli.kafka import topics, configs, consumer_groups\n"
        "from barnabas.cli.operations import topics, configs, groups\n"
        "print([name for name in ('click', 'rich', 'barnabas.node', 'barnabas.server', 'pyarrow')"
        " if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "[]"
