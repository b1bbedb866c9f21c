"""Every example of docs/testing.md is a test that passes, alone and as it is printed."""

import re
from pathlib import Path

import pytest

from barnabas.testing import Broker, Cluster
from barnabas.testing.faults import Faults

pytest_plugins = ["pytester"]

PAGE = (Path(__file__).parents[2] / "docs" / "testing.md").read_text()
EXAMPLES = [
    pytest.param(example, id=match[1])
    for example in re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    if "SparkSession" not in example  # tests/documents/test_spark_programs.py runs it
    and (match := re.search(r"def (test_\w+)", example))
]


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_of_the_page_passes_alone(pytester: pytest.Pytester, example: str) -> None:
    (pytester.path / "test_example.py").write_text(example)
    count = len(re.findall(r"^def test_", example, re.MULTILINE))
    assert count
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
