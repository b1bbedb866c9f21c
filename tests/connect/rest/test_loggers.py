import logging
from collections.abc import Iterator

import pytest
from tests.connect.rest.asgi_client import AsgiClient
from tests.connect.rest.fake_herder import FakeHerder

from barnabas.connect import log_levels

NAME = "barnabas.connect.logger_of_tests"
CHILD = f"{NAME}.child"


@pytest.fixture(autouse=True)
def loggers() -> Iterator[None]:
    names = (NAME, CHILD, "barnabas.connect.none")
    logging.getLogger(CHILD)
    logging.getLogger(NAME).setLevel(logging.WARNING)
    yield
    for name in names:
        logging.getLogger(name).setLevel(logging.NOTSET)
        log_levels._last_modified_ms.pop(name, None)


def test_levels_are_log4js(api: AsgiClient) -> None:
    levels = api("GET", "/admin/loggers").json
    assert levels[NAME] == levels[CHILD] == {"level": "WARN", "last_modified": None}
    assert "root" in levels
    assert api("GET", f"/admin/loggers/{NAME}").json == levels[NAME]


def test_a_level_is_set_for_all_loggers_below(api: AsgiClient) -> None:
    response = api("PUT", f"/admin/loggers/{NAME}", {"level": "debug"})
    assert (response.status, response.json) == (200, [NAME, CHILD])
    changed = api("GET", f"/admin/loggers/{CHILD}").json
    assert changed["level"] == "DEBUG"
    assert isinstance(changed["last_modified"], int)
    again = api("PUT", f"/admin/loggers/{NAME}", {"level": "DEBUG"})
    assert again.json == []


@pytest.mark.parametrize("level", ["OFF", "FATAL", "ERROR", "WARN", "INFO", "TRACE", "ALL"])
def test_every_level_is_shown_as_it_was_set(api: AsgiClient, level: str) -> None:
    api("PUT", f"/admin/loggers/{NAME}", {"level": level})
    assert api("GET", f"/admin/loggers/{NAME}").json["level"] == level


def test_javas_packages_stand_for_ours(api: AsgiClient) -> None:
    java = NAME.replace("barnabas", "org.apache.kafka")
    assert api("PUT", f"/admin/loggers/{java}", {"level": "INFO"}).json == [NAME, CHILD]
    assert api("GET", f"/admin/loggers/{java}").json["level"] == "INFO"


def test_a_level_of_the_cluster_goes_to_the_herder(api: AsgiClient, herder: FakeHerder) -> None:
    response = api("PUT", f"/admin/loggers/{NAME}?scope=cluster", {"level": "info"})
    assert (response.status, response.content) == (204, b"")
    assert herder.cluster_levels == {NAME: "INFO"}


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "message"),
    [
        ("GET", "none", None, 404, "Logger none not found."),
        ("PUT", NAME, {"level": "LOUD"}, 404, "invalid log level 'LOUD'."),
        ("PUT", NAME, {}, 400, "Desired 'level' parameter was not specified in request."),
    ],
)
def test_errors(
    api: AsgiClient, method: str, path: str, body: object, status: int, message: str
) -> None:
    response = api(method, f"/admin/loggers/{path}", body)
    assert (response.status, response.message) == (status, message)
