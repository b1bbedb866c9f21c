"""OAUTHBEARER: its message, unsecured tokens, signed tokens, and their keys."""

import asyncio
import base64
import hmac
import json
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from hypothesis import given
from hypothesis import strategies as st
from tests.security.authentication.stepping import step
from tests.wait import wait_until

from barnabas.config import BrokerSettings
from barnabas.node.format import single_node_properties
from barnabas.security.authentication.exchange import LoginFailed
from barnabas.security.authentication.jwks import JwksKeys, fetch_document, fetch_documents
from barnabas.security.authentication.oauthbearer import (
    InvalidToken,
    OAuthBearerExchange,
    TokenValidator,
    ValidToken,
)
from barnabas.security.authentication.secured_jwt import SignedTokenValidator, TokenRules
from barnabas.security.authentication.unsecured_jwt import (
    UnsecuredTokenValidator,
    unsecured_token,
)

NOW_S = 1_000_000


class OneToken:
    """Accepts the token `good`."""

    def validate(self, token: str) -> ValidToken:
        if token != "good":
            raise InvalidToken("it is bad", "invalid_token", "all")
        return ValidToken("alice", 5_000)


# The message


@pytest.mark.parametrize(
    "message",
    [
        b"n,,\x01auth=Bearer good\x01\x01",
        b"n,a=alice,\x01auth=bearer good\x01\x01",
        b"n,,\x01auth=Bearer good\x01traceId=1 2\x01\x01",
        b"n,,\x01a=\x01auth=Bearer good\x01\x01",
    ],
)
def test_a_valid_token_logs_in_until_it_expires(message: bytes) -> None:
    exchange = OAuthBearerExchange(OneToken())
    assert step(exchange, message) == b""
    assert exchange.login is not None
    assert str(exchange.login.principal) == "User:alice"
    assert exchange.login.expires_ms == 5_000


def test_an_invalid_token_is_explained_in_json() -> None:
    with pytest.raises(LoginFailed) as failed:
        step(OAuthBearerExchange(OneToken()), b"n,,\x01auth=Bearer bad\x01\x01")
    assert failed.value.response == b'{"status":"invalid_token","scope":"all"}'
    assert failed.value.message == failed.value.response.decode()
    assert "it is bad" in failed.value.reason


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"\x01",
        b"n,,\x01\x01",
        b"n,,\x01auth=Bearer good\x01",
        b"n,,\x01auth=Basic good\x01\x01",
        b"n,,\x01auth=Bearer \x01\x01",
        b"n,,\x01auth=Bearer good\x01auth=Bearer good\x01\x01",
        b"n,,\x01trace1=x\x01auth=Bearer good\x01\x01",
        b"n,a=bob,\x01auth=Bearer good\x01\x01",
        b"y,,\x01auth=Bearer good\x01\x01",
        b"n,,\x01auth=Bearer \xff\x01\x01",
        b"n,,\x01auth=Bearer good\x01" + b"a=\x01" * 100 + b"\x01",
        b"n,,\x01auth=Bearer good\x01a=" + b"x" * 65_536 + b"\x01\x01",
    ],
)
def test_other_messages_fail_at_once(message: bytes) -> None:
    exchange = OAuthBearerExchange(OneToken())
    with pytest.raises(LoginFailed) as failed:
        step(exchange, message)
    assert failed.value.response is None
    with pytest.raises(LoginFailed):
        step(exchange, b"n,,\x01auth=Bearer good\x01\x01")
    assert exchange.login is None


# Unsecured tokens


def encoded(part: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=")


def unsecured(claims: Any, header: Any = None, signature: str = "") -> str:
    return f"{encoded(header or {'alg': 'none'})}.{encoded(claims)}.{signature}"


def unsecured_validator(**options: str) -> UnsecuredTokenValidator:
    named = {f"unsecuredValidator{name}": value for name, value in options.items()}
    return UnsecuredTokenValidator(named, lambda: NOW_S)


def test_an_unsecured_token_of_a_login_is_valid() -> None:
    options = {"unsecuredLoginStringClaim_sub": "alice", "unsecuredLoginListClaim_scope": ",a,b"}
    token, expires_s = unsecured_token(options, NOW_S)
    valid = unsecured_validator(RequiredScope="a b").validate(token)
    assert valid == ValidToken("alice", int(expires_s * 1000))


@pytest.mark.parametrize(
    ("claims", "options"),
    [
        ({"sub": "a", "exp": NOW_S + 1}, {}),
        ({"sub": "a", "exp": NOW_S + 1, "iat": NOW_S}, {}),
        ({"user": "a", "exp": NOW_S + 1}, {"PrincipalClaimName": "user"}),
        ({"sub": "a", "exp": NOW_S - 1}, {"AllowableClockSkewMs": "2000"}),
        ({"sub": "a", "exp": NOW_S + 9, "iat": NOW_S + 1}, {"AllowableClockSkewMs": "2000"}),
        (
            {"sub": "a", "exp": NOW_S + 1, "scp": "x y"},
            {"ScopeClaimName": "scp", "RequiredScope": "y"},
        ),
    ],
)
def test_options_of_the_validator(claims: dict[str, Any], options: dict[str, str]) -> None:
    assert unsecured_validator(**options).validate(unsecured(claims)).principal_name == "a"


@pytest.mark.parametrize(
    "token",
    [
        "",
        "a.b",
        "a.b.c.d",
        unsecured({"sub": "a", "exp": NOW_S + 1}, {"alg": "RS256"}),
        unsecured({"sub": "a", "exp": NOW_S + 1}, signature="c2ln"),
        unsecured({"exp": NOW_S + 1}),
        unsecured({"sub": "", "exp": NOW_S + 1}),
        unsecured({"sub": 1, "exp": NOW_S + 1}),
        unsecured({"sub": "a"}),
        unsecured({"sub": "a", "exp": NOW_S}),
        unsecured({"sub": "a", "exp": "soon"}),
        unsecured({"sub": "a", "exp": True}),
        unsecured({"sub": "a", "exp": NOW_S + 9, "iat": NOW_S + 1}),
        unsecured({"sub": "a", "exp": NOW_S + 9, "iat": NOW_S + 10}),
        unsecured(["sub"]),
        "=.=.",
    ],
)
def test_an_unsecured_token_that_is_not_valid(token: str) -> None:
    with pytest.raises(InvalidToken):
        unsecured_validator().validate(token)


def test_a_missing_scope_is_named() -> None:
    with pytest.raises(InvalidToken) as invalid:
        unsecured_validator(RequiredScope="a b").validate(
            unsecured({"sub": "x", "exp": NOW_S + 1, "scope": ["a"]})
        )
    assert (invalid.value.status, invalid.value.scope) == ("insufficient_scope", "a b")


# Signed tokens

RSA = rsa.generate_private_key(65537, 2048)
OTHER_RSA = rsa.generate_private_key(65537, 2048)
EC = ec.generate_private_key(ec.SECP256R1())


def jwks(**keys: Any) -> bytes:
    entries = []
    for key_id, key in keys.items():
        algorithm: Any = (
            jwt.algorithms.RSAAlgorithm
            if isinstance(key, rsa.RSAPrivateKey)
            else jwt.algorithms.ECAlgorithm
        )
        entries.append(algorithm.to_jwk(key.public_key(), as_dict=True) | {"kid": key_id})
    entries += [{"kty": "oct", "k": "c2VjcmV0", "kid": "shared"}, {"kty": "new"}, "x"]
    return json.dumps({"keys": entries}).encode()


def some_keys(fetch: Callable[[str], bytes], now_s: Callable[[], float] = lambda: 0.0) -> JwksKeys:
    keys = JwksKeys(
        "file:///k", refresh_ms=1, retry_ms=1, retry_max_ms=1, fetch=fetch, monotonic_s=now_s
    )
    keys.load()
    return keys


def signed_validator(**rules: Any) -> TokenValidator:
    keys = some_keys(lambda _: jwks(rsa=RSA, ec=EC))
    defaults = {"audiences": ("kafka", "other"), "issuer": "https://issuer"}
    return SignedTokenValidator(keys, TokenRules(**{**defaults, **rules}))


def claims(**changes: Any) -> dict[str, Any]:
    now_s = int(time.time())
    valid = {
        "sub": "alice",
        "aud": ["x", "kafka"],
        "iss": "https://issuer",
        "iat": now_s,
        "exp": now_s + 60,
    } | {name: now_s + value for name, value in changes.items() if name in ("iat", "exp", "nbf")}
    other = {name: value for name, value in changes.items() if name not in ("iat", "exp", "nbf")}
    return {name: value for name, value in (valid | other).items() if value is not None}


def signed(
    changed: dict[str, Any], key: Any = RSA, kid: str | None = "rsa", alg: str = "RS256"
) -> str:
    return jwt.encode(changed, key, alg, headers={"kid": kid} if kid else None)


@pytest.mark.parametrize(
    ("token", "rules"),
    [
        (lambda: signed(claims()), {}),
        (lambda: signed(claims(), EC, "ec", "ES256"), {}),
        (lambda: signed(claims(aud="other")), {}),
        (lambda: signed(claims(exp=-20)), {}),
        (lambda: signed(claims(iat=20)), {}),
        (lambda: signed(claims(scope="a b")), {}),
        (lambda: signed(claims(scope=["a"])), {}),
        (lambda: signed(claims(aud=None)), {"audiences": ()}),
        (lambda: signed(claims(iss="other")), {"issuer": None}),
        (lambda: signed(claims(sub=None, user="alice")), {"principal_claim": "user"}),
    ],
)
def test_a_signed_token_is_valid(token: Callable[[], str], rules: dict[str, Any]) -> None:
    valid = signed_validator(**rules).validate(token())
    assert valid.principal_name == "alice"
    assert valid.expires_ms % 1000 == 0


@pytest.mark.parametrize(
    "token",
    [
        lambda: "",
        lambda: "a.b.c",
        lambda: unsecured(claims()),
        lambda: unsecured(claims(), {"alg": "none", "kid": "rsa"}),
        lambda: signed(claims(), OTHER_RSA),
        lambda: signed(claims(), kid=None),
        lambda: signed(claims(), kid="unknown"),
        lambda: signed(claims(), "secret" * 10, "shared", "HS256"),
        lambda: signed(claims(), EC, "rsa", "ES256"),
        lambda: signed(claims())[:-4] + "AAAA",
        lambda: signed(claims(exp=-31)),
        lambda: signed(claims(iat=60)),
        lambda: signed(claims(nbf=60)),
        lambda: signed(claims(aud="unknown")),
        lambda: signed(claims(aud=None)),
        lambda: signed(claims(iss="https://issuer/")),
        lambda: signed(claims(iss=None)),
        lambda: signed(claims(sub=None)),
        lambda: signed(claims(sub=" ")),
        lambda: signed({**claims(), "exp": None}),
        lambda: signed({name: value for name, value in claims().items() if name != "iat"}),
        lambda: signed(claims(scope=7)),
    ],
)
def test_a_signed_token_that_is_not_valid(token: Callable[[], str]) -> None:
    with pytest.raises(InvalidToken):
        signed_validator().validate(token())


def test_the_public_key_is_not_accepted_as_a_shared_secret() -> None:
    pem = RSA.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    header, body = encoded({"alg": "HS256", "kid": "rsa"}), encoded(claims())
    signature = hmac.digest(pem, f"{header}.{body}".encode(), "sha256")
    token = f"{header}.{body}.{base64.urlsafe_b64encode(signature).decode().rstrip('=')}"
    with pytest.raises(InvalidToken):
        signed_validator().validate(token)


@given(
    st.one_of(st.binary(max_size=100).map(lambda raw: raw.decode("latin-1")), st.text(max_size=50))
)
def test_arbitrary_tokens_are_only_invalid(token: str) -> None:
    for validator in (unsecured_validator(), signed_validator()):
        with pytest.raises(InvalidToken):
            validator.validate(token)


# Keys


def test_an_unknown_key_starts_a_refresh_once_a_minute() -> None:
    now_s = [0.0]
    keys = some_keys(lambda _: jwks(rsa=RSA), lambda: now_s[0])
    assert keys.get("rsa") is not None
    for at_s, key_id, refreshes in (
        (0, "new", True),
        (59, "new", False),
        (59, "another", True),
        (59.5, "made-up", False),
        (60, "new", True),
        (60, "x" * 1001, False),
    ):
        now_s[0] = at_s
        keys._wake.clear()
        assert keys.get(key_id) is None
        assert keys._wake.is_set() == refreshes


def test_the_keys_are_fetched_in_threads_before_the_node_serves(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A server that does not answer must not stop the event loop for ten seconds."""
    threads: list[threading.Thread] = []

    def fetch(url: str) -> bytes:
        threads.append(threading.current_thread())
        if url.endswith("down"):
            raise OSError("unreachable")
        return b"{}"

    monkeypatch.setattr("barnabas.security.authentication.jwks.fetch_document", fetch)
    settings = BrokerSettings.from_properties(
        single_node_properties("127.0.0.1", 9092, Path("data"), 9093)
        | {
            "listeners": "A://127.0.0.1:1,B://127.0.0.1:2,C://127.0.0.1:3,CONTROLLER://127.0.0.1:4",
            "listener.security.protocol.map": "A:SASL_PLAINTEXT,B:SASL_PLAINTEXT,"
            "C:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "inter.broker.listener.name": "C",
            "sasl.enabled.mechanisms": "OAUTHBEARER",
            "sasl.oauthbearer.jwks.endpoint.url": "http://issuer/keys",
            "listener.name.b.oauthbearer.sasl.oauthbearer.jwks.endpoint.url": "http://issuer/down",
        }
    )
    documents = asyncio.run(fetch_documents(settings))
    assert documents["http://issuer/keys"] == b"{}"
    assert isinstance(documents["http://issuer/down"], OSError)
    assert len(documents) == 2
    assert threading.main_thread() not in threads


def test_a_server_that_does_not_speak_http_is_an_error_of_the_fetch() -> None:
    """Another exception would end the thread that refreshes the keys."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            client, _ = server.accept()
            client.sendall(b"castle\r\n\r\n")
            client.close()

        answering = threading.Thread(target=answer)
        answering.start()
        with pytest.raises(OSError, match="not HTTP"):
            fetch_document(f"http://127.0.0.1:{server.getsockname()[1]}/keys")
        answering.join()


def test_the_unknown_keys_that_are_remembered_are_few() -> None:
    now_s = [0.0]
    keys = some_keys(lambda _: jwks(rsa=RSA), lambda: now_s[0])
    for number in range(100):
        now_s[0] = number
        keys.get(str(number))
    assert len(keys._unknown) == 16


def test_a_refresh_in_the_thread_finds_new_keys_and_survives_failures() -> None:
    documents: list[Any] = [jwks(rsa=RSA), OSError("unreachable"), b"{}", jwks(rsa=RSA, ec=EC)]

    def fetch(_: str) -> bytes:
        document = documents.pop(0) if len(documents) > 1 else documents[0]
        if isinstance(document, OSError):
            raise document
        return bytes(document)

    keys = some_keys(fetch)
    keys.start()
    try:
        wait_until(lambda: keys.get("ec") is not None)
    finally:
        keys.close()


@pytest.mark.parametrize(
    "document", [b"", b"[]", b"{}", b'{"keys": []}', b'{"keys": [{"kty": "RSA"}]}']
)
def test_a_document_without_keys_is_an_error(document: bytes) -> None:
    with pytest.raises(ValueError, match=r"of the form|no public keys"):
        some_keys(lambda _: document)
