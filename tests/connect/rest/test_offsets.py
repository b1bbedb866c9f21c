from typing import Any

import pytest
from tests.connect.rest.asgi_client import AsgiClient
from tests.connect.rest.fake_herder import FakeHerder

from barnabas.connect.model import StoredOffset

PATH = "/connectors/files/offsets"
ITEM = {"partition": {"filename": "/tmp/a"}, "offset": {"position": 2}}


@pytest.fixture(autouse=True)
def files(api: AsgiClient, source: dict[str, Any]) -> None:
    api("PUT", "/connectors/files/config", source)


def test_offsets_are_read_and_changed(api: AsgiClient, herder: FakeHerder) -> None:
    assert api("GET", PATH).json == {"offsets": []}
    removed = {"partition": {"filename": "/tmp/b"}, "offset": None}
    response = api("PATCH", PATH, {"offsets": [ITEM, removed]})
    assert (response.status, response.json) == (200, {"message": "altered"})
    assert herder.positions["files"] == [
        StoredOffset({"filename": "/tmp/a"}, {"position": 2}),
        StoredOffset({"filename": "/tmp/b"}, None),
    ]
    assert api("GET", PATH).json == {"offsets": [ITEM, removed]}


def test_offsets_are_reset(api: AsgiClient, herder: FakeHerder) -> None:
    api("PATCH", PATH, {"offsets": [ITEM]})
    response = api("DELETE", PATH)
    assert (response.status, response.json) == (200, {"message": "reset"})
    assert herder.positions["files"] == []


@pytest.mark.parametrize("body", [{}, {"offsets": []}, {"offsets": None}])
def test_an_alteration_needs_offsets(api: AsgiClient, body: object) -> None:
    response = api("PATCH", PATH, body)
    assert response.status == 400
    assert response.message == (
        "Partitions / offsets need to be provided for an alter offsets request"
    )


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"offsets": "x"}, "offsets has to be an array, not a string"),
        ({"offsets": [1]}, "An item of offsets has to be an object, not a number"),
        ({"offsets": [{"offset": {}}]}, "Partition objects cannot be null"),
        ({"offsets": [{"partition": 1}]}, "partition has to be an object, not a number"),
        ({"offset": []}, 'Unrecognized field "offset": known are offsets'),
    ],
)
def test_a_body_that_cannot_be_read_is_an_error(
    api: AsgiClient, body: object, message: str
) -> None:
    response = api("PATCH", PATH, body)
    assert (response.status, response.message) == (500, message)
