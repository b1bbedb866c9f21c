"""The examples of the documentation run, and its links work."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen

import pytest
from tests.conformance.brokers import BrokerProcess, free_port

from barnabas.registry.service import SchemaRegistry

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
OPERATIONS = ROOT / "docs" / "operations.md"
SPARK = ROOT / "docs" / "spark.md"
"""Its programs run in an existing session: see tests/spark/test_documents.py."""


def blocks(page: Path, language: str) -> list[str]:
    """Returns complete programs; fragments are fenced as `py`."""
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def addresses(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Starts a broker and a registry; returns their addresses by those in the pages."""
    metrics = f"127.0.0.1:{free_port()}"
    settings = {"barnabas.metrics.listener": metrics}
    broker = BrokerProcess(tmp_path_factory.mktemp("documents"), settings=settings)
    broker.start()
    with SchemaRegistry(broker.bootstrap) as registry:
        yield {
            "localhost:9092": broker.bootstrap,
            "localhost:9308": metrics,
            "localhost:8081": registry.url.removeprefix("http://"),
        }
    broker.stop()


@pytest.mark.parametrize(
    "example",
    [
        pytest.param(code, id=f"{page.name}-{number}")
        for page in PAGES
        if page != SPARK
        for number, code in enumerate(blocks(page, "python"))
        if "SparkSession" not in code  # likewise
    ],
)
def test_a_python_example_runs(addresses: dict[str, str], example: str) -> None:
    for written, real in addresses.items():
        example = example.replace(written, real)
    done = subprocess.run(
        [sys.executable, "-c", example], capture_output=True, text=True, timeout=110, check=False
    )
    assert done.returncode == 0, done.stderr
    for promised in re.findall(r"^print\(.*\)  # (.*)$", example, re.MULTILINE):
        assert promised in done.stdout


def test_shell_examples_run_with_the_example_settings(tmp_path: Path) -> None:
    for settings in blocks(OPERATIONS, "properties"):
        if name := re.match(r"# (\S+\.properties)\n", settings):
            (tmp_path / name[1]).write_text(settings)
    command = tmp_path / "bin" / "barnabas"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m barnabas.cli "$@"\n')
    command.chmod(0o755)
    for script in blocks(OPERATIONS, "sh"):
        done = subprocess.run(
            ["sh", "-e", "-c", script],
            cwd=tmp_path,
            env={**os.environ, "PATH": f"{command.parent}:{os.environ['PATH']}"},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr
    for directory in ("data", "controller-101", "broker-1"):
        assert (tmp_path / directory / "meta.properties").exists()


def test_the_table_of_metrics_lists_existing_metrics(addresses: dict[str, str]) -> None:
    text = urlopen(f"http://{addresses['localhost:9308']}/metrics").read().decode()
    expected = re.findall(
        r"^\| (`kafka_(?:server_r|controller|server_brokerm).*?) \|", OPERATIONS.read_text(), re.M
    )
    names = [name for cell in expected for name in _expanded(cell)]
    assert len(names) > 20
    assert [name for name in names if name not in text] == []


def _expanded(cell: str) -> list[str]:
    """Returns the names in a table cell; `a_{b,c}` is two names."""
    names = []
    for name in re.findall(r"`([^`]+)`", cell):
        head, brace, rest = name.partition("{")
        choices, _, tail = rest.partition("}")
        names += [head + choice + tail for choice in choices.split(",")] if brace else [head]
    return names


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_point_to_existing_files(page: Path) -> None:
    links = re.findall(r"\]\(([^)#:]+)[^)]*\)", page.read_text())
    assert [link for link in links if not (page.parent / link).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_modules_named_on_a_page_exist(page: Path) -> None:
    modules = re.findall(r"`([a-z_]+/[a-z_/]+\.py)`", page.read_text())
    source = ROOT / "src" / "barnabas"
    exists = [(source / module).exists() or (ROOT / module).exists() for module in modules]
    assert [module for module, is_there in zip(modules, exists, strict=True) if not is_there] == []
