"""docs/compatibility.md says of every API exactly what the broker advertises."""

import re
from pathlib import Path

from barnabas.server.api import HANDLERS, served_versions
from barnabas.wire.apis import ApiKey
from barnabas.wire.schema import VersionRange

PAGE = Path(__file__).parents[2] / "docs" / "compatibility.md"
ROW = re.compile(r"^\| (\d+) \| (\w+) \| ([\d-]+) \| ([^|]+) \|$", re.MULTILINE)


def test_the_page_has_one_row_for_every_api_key() -> None:
    assert [int(key) for key, *_ in ROW.findall(PAGE.read_text())] == [key.value for key in ApiKey]


def test_the_page_says_served_of_exactly_the_versions_that_are_advertised() -> None:
    claimed = {
        ApiKey(int(key)): versions
        for key, _, versions, state in ROW.findall(PAGE.read_text())
        if state == "served"
    }
    assert claimed == {key: _text(served_versions(key)) for key in HANDLERS}


def _text(versions: VersionRange) -> str:
    return str(versions.min) if versions.min == versions.max else str(versions)
