"""The commands of examples/README.md work as printed, each on a fresh broker.

All of them start at once, because most of their time is waiting.
"""

import re
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.documents.pages import ROOT, Fence, fences, run_in_shell

from barnabas.testing import Broker

EXAMPLES = ROOT / "examples"
COMMANDS = [fence for fence in fences(EXAMPLES / "README.md") if fence.language == "sh"]
OUTPUT = {fence.number - 1: fence.text for fence in fences(EXAMPLES / "README.md")}
IDS = [re.findall(r"(\w+)\.py", fence.text)[0] for fence in COMMANDS]

Completed = subprocess.CompletedProcess[str]


@pytest.fixture(scope="module")
def completed(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Completed]:
    """Returns what the commands of each fence printed."""
    directories = [tmp_path_factory.mktemp(name) / "examples" for name in IDS]
    with ThreadPoolExecutor(len(COMMANDS)) as threads:
        done = list(threads.map(_run, COMMANDS, directories))
    return {fence.number: each for fence, each in zip(COMMANDS, done, strict=True)}


def _run(commands: Fence, directory: Path) -> Completed:
    shutil.copytree(EXAMPLES, directory, ignore=shutil.ignore_patterns("__pycache__"))
    with Broker() as broker:
        return run_in_shell(commands.text, directory, {"localhost:9092": broker.bootstrap_servers})


@pytest.mark.parametrize("commands", COMMANDS, ids=IDS)
def test_the_commands_of_an_example_print_the_documented_output(
    commands: Fence, completed: dict[int, Completed]
) -> None:
    done = completed[commands.number]
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(_pattern(OUTPUT[commands.number]), f"{done.stdout.rstrip()}\n"), done.stdout


def _pattern(output: str) -> str:
    """Returns the expression for an output in which `...` leaves something out."""
    lines = (re.escape(line).replace(r"\.\.\.", ".*") + r"\n" for line in output.splitlines())
    return "".join(r"(?:.*\n)*" if line == r".*\n" else line for line in lines)


@pytest.mark.parametrize("commands", COMMANDS, ids=IDS)
def test_an_example_shows_its_commands(commands: Fence) -> None:
    (program,) = re.findall(r"\w+\.py", commands.text)
    docstring = (EXAMPLES / program).read_text().partition('"""\n\n')[0]
    assert [line for line in commands.text.splitlines() if f"    {line}\n" not in docstring] == []


def test_every_example_is_on_the_page() -> None:
    assert {f"{name}.py" for name in IDS} == {path.name for path in EXAMPLES.glob("*.py")}


def test_no_two_examples_share_a_topic_or_group() -> None:
    names = [name for fence in COMMANDS for name in _names(fence.text)]
    assert sorted(names) == sorted(set(names))


def _names(commands: str) -> set[str]:
    (arguments,) = re.findall(r"\.py localhost:9092 (.*)", commands)
    produced = re.findall(r"barnabas produce (\S+)", commands)
    return {*produced, *re.findall(r"(?<!\S)[a-z][a-z-]+(?!\S)", arguments)}
