"""Each mechanism says what its RFC has it say, and believes only whoever knows the password."""

import asyncio
import time

import pytest
from tests.net.harness import scram_broker

from barnabas.net.sasl import (
    AuthenticationFailed,
    SaslExchange,
    SaslClient,
    BearerToken,
    oauthbearer,
    plain,
    scram,
)


def finish(exchange: SaslExchange, word: bytes) -> None:
    """Say the last word; the exchange must have nothing to add."""
    with pytest.raises(StopIteration):
        exchange.send(word)


def test_plain_says_name_and_password() -> None:
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
VERDICT = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def an_exchange() -> SaslExchange:
    return scram("sha256", "user", "pencil", NONCE)


def test_scram_speaks_as_in_the_rfc() -> None:
    exchange = an_exchange()
    assert next(exchange) == b"n,,n=user,r=" + NONCE.encode()
    assert exchange.send(FIRST) == PROOF
    finish(exchange, VERDICT)


def test_scram_escapes_what_a_name_may_not_hold() -> None:
    assert b"n=a=3Db=2Cc," in next(scram("sha256", "a=b,c", "x"))


def test_scram_draws_another_nonce_each_time() -> None:
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
def test_scram_does_not_take_every_challenge(challenge: bytes, reason: str) -> None:
    exchange = an_exchange()
    next(exchange)
    with pytest.raises(AuthenticationFailed, match=reason):
        exchange.send(challenge)


@pytest.mark.parametrize("verdict", [b"v=" + b"A" * 43 + b"=", b"", b"e=invalid-proof"])
def test_scram_ends_with_proof_that_the_broker_knows_the_password(verdict: bytes) -> None:
    exchange = an_exchange()
    next(exchange)
    exchange.send(FIRST)
    with pytest.raises(AuthenticationFailed):
        exchange.send(verdict)


def test_oauthbearer_says_the_token_and_its_extensions() -> None:
    exchange = oauthbearer(BearerToken("abc", 0, {"logicalCluster": "castle"}))
    assert next(exchange) == b"n,,\x01auth=Bearer abc\x01logicalCluster=castle\x01\x01"
    finish(exchange, b"")


def test_oauthbearer_that_is_refused_says_why() -> None:
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

    async def said(sasl: SaslClient) -> bytes:
        return next(await sasl.exchange())

    async def scenario() -> None:
        sasl = SaslClient("OAUTHBEARER", fetch_token=fetch)
        assert (
            await asyncio.gather(said(sasl), said(sasl))
            == [b"n,,\x01auth=Bearer token-1\x01\x01"] * 2
        )
        sasl._renew_s = 0
        assert b"token-2" in await said(sasl)
        assert b"token-3" in await said(sasl)
        assert b"token-3" in await said(sasl)

    asyncio.run(scenario())


def test_a_token_may_come_from_a_coroutine_and_bring_extensions() -> None:
    async def fetch() -> tuple[str, float, str, dict[str, str]]:
        return "t", time.time() + 60, "principal", {"a": "b"}

    async def scenario() -> None:
        exchange = await SaslClient("OAUTHBEARER", fetch_token=fetch).exchange()
        assert next(exchange) == b"n,,\x01auth=Bearer t\x01a=b\x01\x01"

    asyncio.run(scenario())


def test_whoever_gives_no_token_is_told_of() -> None:
    def fetch() -> None:
        raise ValueError("the identity provider is away")

    with pytest.raises(AuthenticationFailed, match="provider is away"):
        asyncio.run(SaslClient("OAUTHBEARER", fetch_token=fetch).exchange())
    with pytest.raises(AuthenticationFailed, match="oauth_cb"):
        asyncio.run(SaslClient("OAUTHBEARER").exchange())


def test_a_changed_password_counts_from_the_next_connection_on() -> None:
    sasl = SaslClient("PLAIN", "a", "old")
    sasl.update_credentials("a", "new")
    assert next(asyncio.run(sasl.exchange())) == b"\0a\0new"


def test_a_mechanism_that_is_not_spoken_is_told() -> None:
    with pytest.raises(AuthenticationFailed, match=r"GSSAPI.*PLAIN"):
        asyncio.run(SaslClient("GSSAPI").exchange())


@pytest.mark.parametrize("digest", ["sha256", "sha512"])
def test_scram_agrees_with_whoever_knows_the_password(digest: str) -> None:
    client, broker = scram(digest, "a", "secret"), scram_broker(digest, "secret")
    next(broker)
    word = client.send(broker.send(next(client)))
    finish(client, broker.send(word))
