"""SCRAM: the examples of the RFCs, and every way to do it wrong."""

import base64
import contextlib
from collections.abc import Generator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.security.authentication.stepping import KnownCredentials, a_credential, step

from barnabas.net.sasl import AuthenticationFailed, scram
from barnabas.security.authentication.exchange import LoginFailed
from barnabas.security.authentication.scram import ScramExchange
from barnabas.security.principal import KafkaPrincipal
from barnabas.security.scram_credentials import ScramMechanismCode

SHA_256, SHA_512 = ScramMechanismCode.SCRAM_SHA_256, ScramMechanismCode.SCRAM_SHA_512

# The example of RFC 7677, section 3.
CLIENT_FIRST = b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
SERVER_NONCE = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
RFC_SALT = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
SERVER_FIRST = (
    b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
)
CLIENT_FINAL = (
    b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
    b"p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
)
SERVER_FINAL = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="

RFC_USERS = KnownCredentials({"user": a_credential(SHA_256, "pencil", RFC_SALT)})
USERS = KnownCredentials(
    {"a=b,c": a_credential(SHA_512, "secret"), "weak": a_credential(SHA_512, "secret", b"s", 4095)},
    {"token-id": a_credential(SHA_512, "hmac")},
)


def rfc_exchange() -> ScramExchange:
    return ScramExchange(SHA_256, RFC_USERS, SERVER_NONCE)


def log_in(exchange: ScramExchange, client: Generator[bytes, bytes, None]) -> None:
    """Passes messages between the client and the server until the client is satisfied."""
    message = next(client)
    while True:
        response = step(exchange, message)
        try:
            message = client.send(response)
        except StopIteration:
            return


def failure_of(exchange: ScramExchange, *messages: bytes) -> LoginFailed:
    """Returns the error of the last message; the others must succeed."""
    for message in messages[:-1]:
        step(exchange, message)
    with pytest.raises(LoginFailed) as failed:
        step(exchange, messages[-1])
    assert exchange.login is None
    return failed.value


def test_it_matches_the_example_of_the_rfc() -> None:
    exchange = rfc_exchange()
    assert step(exchange, CLIENT_FIRST) == SERVER_FIRST
    assert exchange.login is None
    assert step(exchange, CLIENT_FINAL) == SERVER_FINAL
    assert exchange.login is not None
    assert exchange.login.principal == KafkaPrincipal("User", "user")


def test_a_client_with_the_right_password_logs_in_with_sha_512() -> None:
    exchange = ScramExchange(SHA_512, USERS)
    log_in(exchange, scram("sha512", "a=b,c", "secret"))
    assert exchange.login is not None
    assert exchange.login.principal.name == "a=b,c"


def test_a_token_logs_its_owner_in_until_it_expires() -> None:
    exchange = ScramExchange(SHA_512, USERS)
    log_in(exchange, scram("sha512", "token-id", "hmac", is_token=True))
    assert exchange.login is not None
    assert exchange.login.principal == KafkaPrincipal("User", "alice", token_authenticated=True)
    assert exchange.login.expires_ms == 1_000


@pytest.mark.parametrize(
    ("user", "password", "is_token"),
    [
        ("a=b,c", "wrong", False),
        ("unknown", "secret", False),
        ("weak", "secret", False),
        ("token-id", "hmac", False),  # a token is no user
        ("a=b,c", "secret", True),  # a user is no token
        ("token-id", "wrong", True),
    ],
)
def test_all_failures_look_the_same_to_the_client(
    user: str, password: str, *, is_token: bool
) -> None:
    exchange = ScramExchange(SHA_512, USERS)
    with pytest.raises(LoginFailed) as failed:
        log_in(exchange, scram("sha512", user, password, is_token=is_token))
    assert failed.value.message == (
        "Authentication failed with SASL mechanism SCRAM-SHA-512: the credentials are not valid."
    )
    assert exchange.login is None


def test_the_broker_proves_that_it_knows_the_password() -> None:
    exchange = ScramExchange(SHA_512, USERS)
    client = scram("sha512", "a=b,c", "secret")
    final = client.send(step(exchange, next(client)))
    step(exchange, final)
    with pytest.raises(AuthenticationFailed):
        client.send(b"v=" + base64.b64encode(bytes(64)))


@pytest.mark.parametrize(
    "first",
    [
        b"",
        b"n,,",
        b"n,,n=,r=abc",
        b"n,,n=user",
        b"n,,r=abc,n=user",
        b"n,,n=user,r=",
        b"n,,n=user,r=a b",
        b"p=tls-unique,,n=user,r=abc",
        b"y,,n=user,r=abc",
        b"n,,m=ext,n=user,r=abc",
        b"n,,n=user,r=abc" + b",a=b" * 1024,  # too long
        b"n,,n=user,r=abc,m=ext",
        b"n,,n=user,r=abc,=",
        b"n,,n=us=er,r=abc",
        b"n,,n=us=2cer,r=abc",
        b"n,a=other,n=user,r=abc",
        b"n,,n=\xff,r=abc",
    ],
)
def test_a_malformed_first_message_fails(first: bytes) -> None:
    failure_of(rfc_exchange(), first)


@pytest.mark.parametrize(
    "final",
    [
        b"",
        CLIENT_FINAL.replace(b"biws", b"biwsCg=="),
        CLIENT_FINAL.replace(b"r=rOpr", b"r=xOpr"),
        CLIENT_FINAL.replace(b",p=dHzb", b",p=dHzc"),
        CLIENT_FINAL.replace(b",p=dHzb", b",p="),
        CLIENT_FINAL.replace(b"dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=", b"***"),
        CLIENT_FINAL.replace(b",p=", b",x=y,p="),
        CLIENT_FINAL.partition(b",p=")[0],
        CLIENT_FIRST,
        b"\xff",
    ],
)
def test_a_wrong_final_message_fails(final: bytes) -> None:
    failure_of(rfc_exchange(), CLIENT_FIRST, final)


def test_a_recorded_login_cannot_be_replayed() -> None:
    """The server's nonce is another one."""
    failure_of(ScramExchange(SHA_256, RFC_USERS), CLIENT_FIRST, CLIENT_FINAL)


def test_an_exchange_ends_with_its_first_failure_and_with_its_success() -> None:
    failed = rfc_exchange()
    step(failed, CLIENT_FIRST)
    for _ in range(2):
        with pytest.raises(LoginFailed):
            step(failed, CLIENT_FINAL.replace(b"biws", b"biwt"))
    with pytest.raises(LoginFailed):
        step(failed, CLIENT_FINAL)
    assert failed.login is None
    done = rfc_exchange()
    step(done, CLIENT_FIRST)
    step(done, CLIENT_FINAL)
    with pytest.raises(LoginFailed):
        step(done, CLIENT_FINAL)


def test_the_credential_is_that_of_the_time_of_the_login() -> None:
    users = KnownCredentials()
    users.users["user"] = a_credential(SHA_256, "old")
    users.users["user"] = a_credential(SHA_256, "new")
    log_in(ScramExchange(SHA_256, users), scram("sha256", "user", "new"))


MESSAGES = st.one_of(
    st.binary(max_size=100),
    st.lists(
        st.sampled_from(
            [b"n,,", b"n=user", b"n=", b"r=abc", b"a=x", b",", b"=", b"c=biws", b"p=", b"\xff"]
        ),
        max_size=10,
    ).map(b"".join),
)


@given(st.lists(MESSAGES, max_size=3))
def test_arbitrary_bytes_only_fail(messages: list[bytes]) -> None:
    exchange = rfc_exchange()
    for message in messages:
        with contextlib.suppress(LoginFailed):
            step(exchange, message)
    assert exchange.login is None


@given(MESSAGES)
def test_arbitrary_final_messages_only_fail(message: bytes) -> None:
    failure_of(rfc_exchange(), CLIENT_FIRST, message)
