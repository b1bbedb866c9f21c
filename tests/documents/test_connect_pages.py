"""The commands of the pages on Connect work as printed, with a broker and a worker that run.

The scripts of a page are run one after another, in one directory: later ones use the connectors of
earlier ones.
"""

import re
from pathlib import Path

import pytest
from tests.documents.connect_worker import pattern, run_all, scripts, servers
from tests.documents.connector_settings import PAGE, connectors_on, with_tables
from tests.documents.pages import ROOT

from barnabas.connect import plugins
from barnabas.connect.plugins import PluginKind, all_plugins, class_name
from barnabas.spark.prerequisites import PrerequisiteError, require_java

PAGES = {
    ROOT / "docs" / "connect.md": ["exactly.once.source.support=enabled"],
    ROOT / "examples" / "connect" / "README.md": ["exactly.once.source.support=enabled"],
}


@pytest.mark.timeout(600)
@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_commands_of_a_page_print_the_documented_output(page: Path, tmp_path: Path) -> None:
    import shutil

    try:
        require_java()
    except PrerequisiteError as error:
        pytest.fail(str(error))
    directory = tmp_path / "work"
    if page.parent.name == "connect":
        shutil.copytree(page.parent, directory)
    else:
        directory.mkdir()
    with servers(tmp_path, *PAGES[page]) as addresses:
        results = run_all(page, directory, addresses)
    for fence, output, done in results:
        log = (tmp_path / "worker.log").read_text()[-3000:]
        assert done.returncode == 0, f"{fence.text}\n{done.stdout}\n{done.stderr}\n{log}"
        if output is not None:
            printed = f"{done.stdout.rstrip()}\n"
            assert re.fullmatch(pattern(output), printed), f"{fence.text}\n{printed}"
    assert len(results) == len(scripts(page))


def test_the_tables_of_settings_are_those_of_the_connectors() -> None:
    page = PAGE.read_text()
    assert page == with_tables(page), "run python -m tests.documents.connector_settings"


def test_every_connector_has_a_table_of_settings() -> None:
    kinds = (PluginKind.SOURCE, PluginKind.SINK)
    ours = [plugin.name for plugin in plugins.all_plugins(*kinds) if "barnabas" in plugin.target]
    shown = {class_name(name, *kinds) for name in connectors_on(PAGE.read_text())}
    assert sorted(shown) == sorted(set(ours))


def test_every_transform_predicate_and_converter_is_on_the_page() -> None:
    page = PAGE.read_text()
    names = {
        plugin.name.rpartition(".")[2].partition("$")[0]
        for kind in PluginKind
        if kind not in (PluginKind.SOURCE, PluginKind.SINK)
        for plugin in all_plugins(kind)
        if plugin.target.startswith("barnabas.")
    }
    assert sorted(name for name in names if f"`{name}`" not in page) == []
