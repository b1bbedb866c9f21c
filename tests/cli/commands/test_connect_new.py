"""`barnabas connect new`: the package works as written."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.conftest import Barnabas

from barnabas.connect import plugins
from barnabas.connect.testing import read_source

SOURCE = Path(__file__).parents[3] / "src"


def environment(package: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": f"{SOURCE}{os.pathsep}{package / 'src'}"}


@pytest.mark.parametrize("kind", ["source", "sink"])
def test_the_test_of_a_new_package_passes(barnabas: Barnabas, tmp_path: Path, kind: str) -> None:
    package = tmp_path / "acme-rows"
    result = barnabas("connect", "new", "acme-rows", "--kind", kind, "--dir", package)
    assert result.exit_code == 0, result.stderr
    assert f"acme_rows:AcmeRows{kind.capitalize()}" in result.stdout
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        cwd=package,
        env=environment(package),
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_new_source_is_tried_by_module_and_class(
    barnabas: Barnabas, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package, rows = tmp_path / "p", tmp_path / "rows"
    barnabas("connect", "new", "tried-rows", "--dir", package)
    rows.mkdir()
    (rows / "a.jsonl").write_text('{"id": 7}\n')
    monkeypatch.syspath_prepend(str(package / "src"))
    result = barnabas(
        "connect",
        "try",
        "rows",
        "connector.class=tried_rows:TriedRowsSource",
        f"directory={rows}",
        "topic=sevens",
        "value.converter=JsonConverter",
        "value.converter.schemas.enable=false",
    )
    assert result.exit_code == 0, result.stderr
    assert result.stdout.splitlines()[1].split() == ["sevens", "-", "-", "-", '{"id":7}']


def test_a_new_connector_is_found_by_its_entry_point(
    barnabas: Barnabas, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "p"
    barnabas("connect", "new", "named-rows", "--dir", package)
    # What pip writes when it installs the package.
    metadata = package / "src" / "named_rows-0.1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: named-rows\nVersion: 0.1.0\n")
    _, _, entry_point = (package / "pyproject.toml").read_text().partition('"barnabas.connect"]\n')
    line = entry_point.splitlines()[0].replace('"', "")
    (metadata / "entry_points.txt").write_text(f"[barnabas.connect]\n{line}\n")
    monkeypatch.syspath_prepend(str(package / "src"))
    for cached in (plugins._installed_plugins, plugins._plugins, plugins._plugins_by_name):
        cached.cache_clear()
        monkeypatch.setattr(plugins, cached.__name__, cached)
    try:
        found = plugins.find_connector("NamedRowsSource")
        assert found.__module__ == "named_rows"
        (package / "a.jsonl").write_text('{"id": 7}\n')
        read = read_source(found, {"directory": str(package), "topic": "t"})  # type: ignore[type-abstract,arg-type]
        assert read.values == [{"id": 7}]
    finally:
        for cached in (plugins._installed_plugins, plugins._plugins, plugins._plugins_by_name):
            cached.cache_clear()


@pytest.mark.parametrize("name", ["Acme", "../x", "a b", "1a", ""])
def test_a_name_that_no_package_can_have_is_an_error(
    barnabas: Barnabas, tmp_path: Path, name: str
) -> None:
    result = barnabas("connect", "new", name, "--dir", tmp_path / "p")
    assert result.exit_code == 1
    assert "such as acme-files" in result.stderr


def test_files_are_not_overwritten(barnabas: Barnabas, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    result = barnabas("connect", "new", "acme", "--dir", tmp_path)
    assert result.exit_code == 1
    assert "is not empty" in result.stderr
