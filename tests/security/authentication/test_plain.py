"""PLAIN: one message, and nothing about who exists."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.security.authentication.stepping import step

from barnabas.security.authentication.exchange import LoginFailed
from barnabas.security.authentication.plain import PlainExchange
from barnabas.security.authentication.users import FixedUsers, PasswordVerifier
from barnabas.security.principal import KafkaPrincipal

USERS = PasswordVerifier([FixedUsers({"alice": "wonder=land,;", "käthe": "grün"})])


def an_exchange() -> PlainExchange:
    return PlainExchange(USERS)


@pytest.mark.parametrize(
    ("message", "user"),
    [
        ("\0alice\0wonder=land,;", "alice"),
        ("alice\0alice\0wonder=land,;", "alice"),
        ("\0käthe\0grün", "käthe"),
    ],
)
def test_the_right_password_logs_in(message: str, user: str) -> None:
    exchange = an_exchange()
    assert step(exchange, message.encode()) == b""
    assert exchange.login is not None
    assert exchange.login.principal == KafkaPrincipal("User", user)
    assert exchange.login.expires_ms is None


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (b"\0alice\0wrong", "user 'alice' has another password"),
        (b"\0bob\0wonder=land,;", "user 'bob' is unknown"),
        (b"\0bo\nb\0x", r"user 'bo\nb' is unknown"),
        (b"bob\0alice\0wonder=land,;", "user 'alice' asked to be 'bob'"),
        (b"\0alice\0", "empty"),
        (b"\0\0wonder", "empty"),
        (b"alice", "1 parts"),
        (b"\0alice\0wonder\0land", "4 parts"),
        (b"\0alice\0\xff", "UTF-8"),
        (b"", "1 parts"),
    ],
)
def test_anything_else_fails_with_a_reason_for_the_log(message: bytes, reason: str) -> None:
    exchange = an_exchange()
    with pytest.raises(LoginFailed) as failed:
        step(exchange, message)
    assert reason in failed.value.reason
    assert "wonder" not in failed.value.reason
    assert exchange.login is None


def test_the_client_cannot_tell_a_wrong_password_from_an_unknown_user() -> None:
    messages = set()
    for attempt in (b"\0alice\0wrong", b"\0bob\0wrong"):
        with pytest.raises(LoginFailed) as failed:
            step(an_exchange(), attempt)
        messages.add(failed.value.message)
    assert len(messages) == 1


def test_a_second_message_fails() -> None:
    exchange = an_exchange()
    step(exchange, b"\0alice\0wonder=land,;")
    with pytest.raises(LoginFailed):
        step(exchange, b"\0alice\0wonder=land,;")


@given(st.binary(max_size=200))
def test_arbitrary_bytes_only_fail(message: bytes) -> None:
    exchange = an_exchange()
    with pytest.raises(LoginFailed):
        step(exchange, message)
    assert exchange.login is None
