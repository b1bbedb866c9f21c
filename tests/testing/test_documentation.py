"""Every example of docs/testing.md is a test that passes."""

import re
from pathlib import Path

import pytest

from barnabas.testing import Broker, Cluster
from barnabas.testing.faults import Faults

pytest_plugins = ["pytester"]

PAGE = (Path(__file__).parents[2] / "docs" / "testing.md").read_text()
EXAMPLES = [
    example
    for example in re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    if "SparkSession" not in example  # it runs where there is one: tests/spark/test_documents.py
]


def test_every_example_of_the_page_passes(pytester: pytest.Pytester) -> None:
    for number, example in enumerate(EXAMPLES):
        (pytester.path / f"test_example_{number}.py").write_text(example)
    count = sum(len(re.findall(r"^def test_", example, re.MULTILINE)) for example in EXAMPLES)
    pytester.runpytest_subprocess().assert_outcomes(passed=count)


def test_the_tables_of_the_page_list_existing_names() -> None:
    for name in re.findall(r"^\| `faults\.(\w+)\(", PAGE, re.MULTILINE):
        assert hasattr(Faults, name), name
    calls = re.findall(r"^\| (`\w+\(.*?) \|", PAGE, re.MULTILINE)
    assert len(calls) > 4
    for name in re.findall(r"`(\w+)\(", " ".join(calls)):
        assert hasattr(Cluster, name), name
    for name in "stop", "start", "restart", "close", "requests":
        assert hasattr(Broker, name), name
