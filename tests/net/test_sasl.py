"""Every SASL mechanism follows its RFC, and SCRAM authenticates the broker too."""

import asyncio
import time

import pytest
from tests.net.harness import scram_broker

from barnabas.net.sasl import (
    AuthenticationFailed,
    BearerToken,
    SaslClient,
    SaslExchange,
    oauthbearer,
    plain,
    scram,
)


def finish(exchange: SaslExchange, message: bytes) -> None:
    """Passes the broker's last message to the exchange, which must end with it."""
    with pytest.raises(StopIteration):
        exchange.send(message)


def test_plain_sends_user_name_and_password() -> None:
    exchange = plain("käthe", "geheim")
    assert next(exchange) == b"\0k\xc3\xa4the\0geheim"
    finish(exchange, b"")


# The example of RFC 7677, section 3.
NONCE = "rOprNGfwEbeRWgbNEkqO"
FIRST = b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
PROOF = (
    b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
    b"p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
)
SERVER_FINAL = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def an_exchange() -> SaslExchange:
    return scram("sha256", "user", "pencil", NONCE)


def test_scram_matches_the_example_of_the_rfc() -> None:
    exchange = an_exchange()
    assert next(exchange) == b"n,,n=user,r=" + NONCE.encode()
    assert exchange.send(FIRST) == PROOF
    finish(exchange, SERVER_FINAL)


def test_scram_escapes_reserved_characters_of_a_user_name() -> None:
    assert b"n=a=3Db=2Cc," in next(scram("sha256", "a=b,c", "x"))


def test_scram_uses_a_new_nonce_for_every_exchange() -> None:
    assert next(scram("sha512", "a", "b")) != next(scram("sha512", "a", "b"))


@pytest.mark.parametrize(
    ("challenge", "reason"),
    [
        (FIRST.replace(b"r=rO", b"r=xx"), "nonce"),
        (b"r=" + NONCE.encode() + b",s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096", "nonce"),
        (b"s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096", "nonce"),
        (FIRST.replace(b"4096", b"1"), "1 SCRAM iterations"),
        (FIRST.replace(b"4096", b"999999999"), "iterations"),
    ],
)
def test_scram_rejects_an_invalid_challenge(challenge: bytes, reason: str) -> None:
    exchange = an_exchange()
    next(exchange)
    with pytest.raises(AuthenticationFailed, match=reason):
        exchange.send(challenge)


@pytest.mark.parametrize("server_final", [b"v=" + b"A" * 43 + b"=", b"", b"e=invalid-proof"])
def test_scram_rejects_a_broker_that_does_not_know_the_password(server_final: bytes) -> None:
    exchange = an_exchange()
    next(exchange)
    exchange.send(FIRST)
    with pytest.raises(AuthenticationFailed):
        exchange.send(server_final)


def test_oauthbearer_sends_the_token_and_its_extensions() -> None:
    exchange = oauthbearer(BearerToken("abc", 0, {"logicalCluster": "castle"}))
    assert next(exchange) == b"n,,\x01auth=Bearer abc\x01logicalCluster=castle\x01\x01"
    finish(exchange, b"")


def test_a_rejected_oauthbearer_token_raises_with_the_reason() -> None:
    exchange = oauthbearer(BearerToken("abc", 0))
    next(exchange)
    assert exchange.send(b'{"status":"invalid_token"}') == b"\x01"
    with pytest.raises(AuthenticationFailed, match="invalid_token"):
        exchange.send(b"")


def test_a_token_is_fetched_once_and_again_before_it_expires() -> None:
    fetched: list[float] = []

    def fetch() -> tuple[str, float]:
        fetched.append(time.time())
        lifetime_s = 0.0 if len(fetched) == 2 else 1_000
        return f"token-{len(fetched)}", time.time() + lifetime_s

    async def first_message(sasl: SaslClient) -> bytes:
        return next(await sasl.exchange("localhost"))

    async def scenario() -> None:
        sasl = SaslClient("OAUTHBEARER", fetch_token=fetch)
        assert (
            await asyncio.gather(first_message(sasl), first_message(sasl))
            == [b"n,,\x01auth=Bearer token-1\x01\x01"] * 2
        )
        sasl._renew_s = 0
        assert b"token-2" in await first_message(sasl)
        assert b"token-3" in await first_message(sasl)
        assert b"token-3" in await first_message(sasl)

    asyncio.run(scenario())


def test_a_token_may_come_from_a_coroutine_and_bring_extensions() -> None:
    async def fetch() -> tuple[str, float, str, dict[str, str]]:
        return "t", time.time() + 60, "principal", {"a": "b"}

    async def scenario() -> None:
        exchange = await SaslClient("OAUTHBEARER", fetch_token=fetch).exchange("localhost")
        assert next(exchange) == b"n,,\x01auth=Bearer t\x01a=b\x01\x01"

    asyncio.run(scenario())


def test_a_callback_that_returns_no_token_raises_with_the_reason() -> None:
    def fetch() -> None:
        raise ValueError("the identity provider is away")

    with pytest.raises(AuthenticationFailed, match="provider is away"):
        asyncio.run(SaslClient("OAUTHBEARER", fetch_token=fetch).exchange("localhost"))
    with pytest.raises(AuthenticationFailed, match="oauth_cb"):
        asyncio.run(SaslClient("OAUTHBEARER").exchange("localhost"))


def test_a_changed_password_is_used_from_the_next_connection_on() -> None:
    sasl = SaslClient("PLAIN", "a", "old")
    sasl.update_credentials("a", "new")
    assert next(asyncio.run(sasl.exchange("localhost"))) == b"\0a\0new"


def test_an_unsupported_mechanism_raises_with_the_supported_ones() -> None:
    with pytest.raises(AuthenticationFailed, match=r"GSSAPI.*PLAIN"):
        asyncio.run(SaslClient("GSSAPI").exchange("localhost"))


@pytest.mark.parametrize("digest", ["sha256", "sha512"])
def test_a_scram_exchange_succeeds_if_both_sides_know_the_password(digest: str) -> None:
    client, broker = scram(digest, "a", "secret"), scram_broker(digest, "secret")
    next(broker)
    client_final = client.send(broker.send(next(client)))
    finish(client, broker.send(client_final))
