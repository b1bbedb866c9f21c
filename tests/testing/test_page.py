"""docs/testing.md tells no lies: every example on it is a test that passes."""

import re
from importlib.util import find_spec
from pathlib import Path

import pytest

from barnabas.testing import Broker, Cluster
from barnabas.testing.faults import Faults

pytest_plugins = ["pytester"]

PAGE = (Path(__file__).parents[2] / "docs" / "testing.md").read_text()
EXAMPLES = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def test_every_example_passes(pytester: pytest.Pytester) -> None:
    for number, example in enumerate(EXAMPLES):
        (pytester.path / f"test_example_{number}.py").write_text(example)
    count = sum(len(re.findall(r"^def test_", example, re.MULTILINE)) for example in EXAMPLES)
    skipped = 0 if find_spec("pyspark") else 1
    pytester.runpytest_subprocess().assert_outcomes(passed=count - skipped, skipped=skipped)


def test_what_the_tables_name_is_there() -> None:
    for name in re.findall(r"^\| `faults\.(\w+)\(", PAGE, re.MULTILINE):
        assert hasattr(Faults, name), name
    calls = re.findall(r"^\| (`\w+\(.*?) \|", PAGE, re.MULTILINE)
    assert len(calls) > 4
    for name in re.findall(r"`(\w+)\(", " ".join(calls)):
        assert hasattr(Cluster, name), name
    for name in "stop", "start", "restart", "close", "requests":
        assert hasattr(Broker, name), name
