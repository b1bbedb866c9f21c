"""The pages on pipelines tell no lies: their programs run, in the order in which they are read."""

import re
from collections.abc import Iterator
from inspect import signature
from pathlib import Path
from types import FunctionType

import pytest
from pyspark.sql import SparkSession

from barnabas.registry.service import SchemaRegistry
from barnabas.spark.session import settings
from barnabas.spark.sink.options import OPTIONS
from barnabas.spark.source.option_names import OPTION_NAMES
from barnabas.testing import Broker

ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "docs" / "spark.md"
TESTING = ROOT / "docs" / "testing.md"
PAGES = [ROOT / "README.md", GUIDE, ROOT / "examples" / "orders" / "README.md"]


@pytest.fixture(scope="module")
def registry(broker: Broker) -> Iterator[SchemaRegistry]:
    with SchemaRegistry(broker.bootstrap_servers) as running:
        yield running


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_programs_of_a_page_print_the_documented_output(
    page: Path,
    spark: SparkSession,
    broker: Broker,
    registry: SchemaRegistry,
    capsys: pytest.CaptureFixture[str],
) -> None:
    names: dict[str, object] = {}
    for program in programs(page):
        here = program.replace("localhost:9092", broker.bootstrap_servers)
        here = here.replace("http://localhost:8081", registry.url)
        exec(compile(here, page.name, "exec"), names)
        printed = capsys.readouterr().out.splitlines()
        assert printed == re.findall(r"^print\(.*\)  # (.*)$", program, re.M)


def test_the_example_of_a_test_passes(spark: SparkSession, request: pytest.FixtureRequest) -> None:
    (example,) = (each for each in programs(TESTING) if "SparkSession" in each)
    names: dict[str, object] = {}
    exec(compile(example, TESTING.name, "exec"), names)
    (test,) = (each for each in names.values() if isinstance(each, FunctionType))
    test(**{name: request.getfixturevalue(name) for name in signature(test).parameters})


def programs(page: Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```$", page.read_text(), re.M | re.S)


def test_the_guide_names_every_option_and_setting() -> None:
    named = set(re.findall(r"`([A-Za-z.]+)`", GUIDE.read_text()))
    assert not {*OPTION_NAMES, *OPTIONS, *settings()} - named
