"""docs/clients.md tells no lies: its examples run."""

import re
from pathlib import Path

import pytest

from barnabas.testing import Broker

PAGE = (Path(__file__).parents[2] / "docs" / "clients.md").read_text()
EXAMPLES = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_an_example_runs(number: int) -> None:
    with Broker() as broker:
        exec(compile(EXAMPLES[number], "clients.md", "exec"), {"servers": broker.bootstrap_servers})
