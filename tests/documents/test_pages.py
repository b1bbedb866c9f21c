"""The programs of the documentation run, and its links and names are right.

Other tests run the programs on Spark (test_spark_programs.py), the commands of the examples
(test_examples.py), docs/connect.md (test_connect_pages.py), and the tests of docs/testing.md
(tests/testing/test_documentation.py).
"""

import re
import subprocess
import sys
from pathlib import Path
from urllib.request import urlopen

import pytest
from tests.documents.pages import (
    PAGES,
    ROOT,
    TIMEOUT_S,
    Fence,
    fences,
    printed,
    programs,
    run_in_shell,
    with_addresses,
)

DOCS = ROOT / "docs"
OPERATIONS = DOCS / "operations.md"
CONNECT = {DOCS / "connect.md", DOCS / "connectors.md"}
RUN_ELSEWHERE = {
    DOCS / "testing.md",
    *CONNECT,
    *(page for page in PAGES if "examples" in page.parts),
}
RUN = {"python", "sh", "properties"}
NOT_RUN = {"text", "json"}
"""Output and pictures."""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_fence_is_run_or_is_output(page: Path) -> None:
    assert {fence.language for fence in fences(page)} <= RUN | NOT_RUN


@pytest.mark.parametrize(
    "program",
    [
        pytest.param(program, id=program.id)
        for page in PAGES
        if page not in RUN_ELSEWHERE
        for program in programs(page)
        if "SparkSession" not in program.text
    ],
)
def test_a_python_program_runs_alone_as_printed(
    addresses: dict[str, str], program: Fence, tmp_path: Path
) -> None:
    file = tmp_path / "test_program.py"
    file.write_text(with_addresses(program.text, addresses))
    is_test = "\ndef test_" in program.text
    done = subprocess.run(
        [sys.executable, *(["-m", "pytest", "-q"] if is_test else []), file],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for line in printed(program.text):
        assert line in done.stdout.splitlines()


@pytest.mark.parametrize(
    "script",
    [
        pytest.param(script, id=script.id)
        for page in PAGES
        if page not in RUN_ELSEWHERE
        for script in programs(page, "sh")
    ],
)
def test_a_shell_script_runs_alone_with_the_files_of_its_page(
    addresses: dict[str, str], script: Fence, tmp_path: Path
) -> None:
    for settings in programs(script.page, "properties"):
        if (name := _file_name(settings)) is not None:
            (tmp_path / name).write_text(settings.text)
    done = run_in_shell(script.text, tmp_path, addresses)
    assert done.returncode == 0, done.stdout + done.stderr
    formatted = re.findall(r"format .*--config (\S+)", script.text)
    for file in formatted:
        (log_dir,) = re.findall(r"^log.dirs=(.*)$", (tmp_path / file).read_text(), re.M)
        assert (tmp_path / log_dir / "meta.properties").exists()


def _file_name(settings: Fence) -> str | None:
    """Returns the name in the first line; settings without one are no file."""
    found = re.match(r"# (\S+\.properties)\n", settings.text)
    return found[1] if found else None


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


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_point_to_existing_files_and_headings(page: Path) -> None:
    broken = []
    for file, heading in re.findall(r"\]\(([^)#:]*)(?:#([^)]*))?\)", page.read_text()):
        target = page.parent / file if file else page
        if not target.exists() or (heading and heading not in _anchors(target)):
            broken.append(f"{file}#{heading}")
    assert broken == []


def _anchors(page: Path) -> set[str]:
    """Returns the anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.M)
    return {re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_modules_named_on_a_page_exist(page: Path) -> None:
    modules = re.findall(r"`([a-z_]+/[a-z_/]+\.py)`", page.read_text())
    source = ROOT / "src" / "barnabas"
    exists = [(source / module).exists() or (ROOT / module).exists() for module in modules]
    assert [module for module, is_there in zip(modules, exists, strict=True) if not is_there] == []
