"""docs/compatibility.md lists exactly the versions that brokers and controllers advertise."""

import re
from pathlib import Path

from barnabas.server import api, controller_api
from barnabas.server.handlers import served_versions
from barnabas.wire import apis
from barnabas.wire.apis import ApiKey
from barnabas.wire.schema import VersionRange

PAGE = Path(__file__).parents[3] / "docs" / "compatibility.md"
ROW = re.compile(r"^\| (\d+) \| (\w+) \| ([\d-]+) \| ([^|]+) \|$", re.MULTILINE)


def test_the_page_has_one_row_for_every_api_key() -> None:
    assert [int(key) for key, *_ in ROW.findall(PAGE.read_text())] == [key.value for key in ApiKey]


def test_the_page_lists_exactly_the_versions_that_are_advertised() -> None:
    assert claimed("served") == {key: _text(served_versions(key)) for key in api.HANDLERS}


def test_the_page_lists_what_controllers_serve() -> None:
    theirs_alone = set(controller_api.HANDLERS) - set(api.HANDLERS)
    reported = {key: _text(served_versions(key)) for key in theirs_alone}
    assert claimed("served by controllers") == reported
    (both,) = re.findall(r"in the same\nversions: ([^.]*)\.", PAGE.read_text())
    names = {name.split()[0] for name in re.split(r",\s+", both)}
    assert names == {apis.api(key).name for key in set(controller_api.HANDLERS) - theirs_alone}


def claimed(state: str) -> dict[ApiKey, str]:
    rows = ROW.findall(PAGE.read_text())
    return {ApiKey(int(key)): versions for key, _, versions, reported in rows if reported == state}


def _text(versions: VersionRange) -> str:
    return str(versions.min) if versions.min == versions.max else str(versions)
