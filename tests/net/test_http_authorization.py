"""Authorization headers, and the log of failures that anybody can cause."""

import base64
import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.net.failure_log import INTERVAL_S, MAX_LINES, FailureLog
from barnabas.net.http_authorization import (
    BasicCredentials,
    BearerCredentials,
    challenges,
    parse_authorization,
)


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


@pytest.mark.parametrize(
    ("header", "credentials"),
    [
        (f"Basic {encoded('alice:a:b')}", BasicCredentials("alice", "a:b")),
        (f"basic  {encoded('älice:ß')}", BasicCredentials("älice", "ß")),
        ("Bearer abc.def.ghi", BearerCredentials("abc.def.ghi")),
        (None, None),
        ("", None),
        ("Basic", None),
        (f"Basic {encoded('alice')}", None),
        (f"Basic {encoded(':secret')}", None),
        (f"Basic {encoded('alice:')}", None),
        (f"Basic {encoded('alice' + chr(0) + ':x')}", None),
        ("Basic !", None),
        ("Bearer a\x01auth=b", None),
        ("Bearer " + "a" * 20_000, None),
        ("Digest abc", None),
    ],
)
def test_credentials_of_a_header(
    header: str | None, credentials: BasicCredentials | BearerCredentials | None
) -> None:
    assert parse_authorization(header) == credentials


@given(st.text())
def test_any_header_has_credentials_or_none(header: str) -> None:
    parse_authorization(header)
    parse_authorization(f"Basic {header}")


def test_credentials_do_not_show_their_secrets() -> None:
    assert "secret" not in f"{BasicCredentials('alice', 'secret')} {BearerCredentials('secret')}"


def test_a_realm_cannot_end_its_quotes() -> None:
    assert challenges(("BASIC",), 'a"b') == ['Basic realm="ab", charset="UTF-8"']


def test_a_failure_is_logged_again_only_after_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    now_s = [0.0]
    failures = FailureLog(logging.getLogger("test"), lambda: now_s[0])
    for now_s[0] in (0.0, 1.0, INTERVAL_S - 1, INTERVAL_S, INTERVAL_S + 1):
        failures.warn("no %s", "reason")
    failures.warn("no %s", "other reason")
    assert caplog.messages == ["no reason", "no reason (2 more since)", "no other reason"]


def test_names_that_clients_choose_cannot_fill_the_log(caplog: pytest.LogCaptureFixture) -> None:
    now_s = [0.0]
    failures = FailureLog(logging.getLogger("test"), lambda: now_s[0])
    for number in range(1000):
        failures.warn("user %d is unknown", number)
    assert len(caplog.messages) == MAX_LINES
    now_s[0] = INTERVAL_S
    failures.warn("user %d is unknown", 1000)
    assert caplog.messages[-1] == "user 1000 is unknown"


def test_the_failures_that_are_remembered_are_few() -> None:
    now_s = [0.0]
    failures = FailureLog(logging.getLogger("silent"), lambda: now_s[0])
    logging.getLogger("silent").disabled = True
    for number in range(5000):
        now_s[0] += 1
        failures.warn("%d", number)
    assert all(isinstance(line, int) for line in failures._logged)  # whatever its length
    assert len(failures._logged) <= 1024
