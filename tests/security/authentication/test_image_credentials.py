"""Credentials of the metadata image: users, tokens, and users that do not exist."""

import asyncio
import base64
import hmac

from tests.security.authentication.stepping import a_credential

from barnabas.config import Secret
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.states import DelegationToken
from barnabas.net.sasl import scram
from barnabas.security.authentication.image_credentials import ImageCredentials
from barnabas.security.authentication.scram import ScramExchange
from barnabas.security.scram_credentials import ScramMechanismCode

SHA_256, SHA_512 = ScramMechanismCode.SCRAM_SHA_256, ScramMechanismCode.SCRAM_SHA_512
TOKEN = DelegationToken("an-id", "User:alice", "User:bob", (), 0, 9_000, 5_000)
KEY = "key of the cluster"


def test_users_are_found_in_the_current_image_by_mechanism() -> None:
    image = MetadataImage()
    credentials = ImageCredentials(lambda: image)
    assert credentials.of_user("alice", SHA_256) is None
    added = image.scram["alice", SHA_256.value] = a_credential(SHA_256, "x")
    assert credentials.of_user("alice", SHA_256) == added
    assert credentials.of_user("alice", SHA_512) is None


def test_an_unknown_user_always_gets_the_same_challenge() -> None:
    image = MetadataImage()
    credentials, other_node = ImageCredentials(lambda: image), ImageCredentials(lambda: image)
    first = credentials.of_nobody("bob", SHA_256)
    assert credentials.of_nobody("bob", SHA_256) == first
    assert credentials.of_nobody("carol", SHA_256).salt != first.salt
    assert credentials.of_nobody("bob", SHA_512).salt != first.salt
    assert other_node.of_nobody("bob", SHA_256).salt != first.salt


def test_the_challenge_of_an_unknown_user_looks_like_that_of_others() -> None:
    image = MetadataImage()
    credentials = ImageCredentials(lambda: image)
    image.scram["alice", SHA_512.value] = a_credential(SHA_512, "x", b"\0" * 20, 8192)
    image.scram["alice", SHA_256.value] = a_credential(SHA_256, "x", b"4xnbf0w3", 4096)
    nobody = credentials.of_nobody("bob", SHA_512)
    assert (len(nobody.salt), nobody.iterations) == (20, 8192)
    nobody = credentials.of_nobody("bob", SHA_256)
    assert (len(nobody.salt), nobody.iterations) == (8, 4096)
    assert nobody.salt.isalnum()


def test_a_client_logs_in_with_the_hmac_of_a_token() -> None:
    image = MetadataImage()
    image.tokens[TOKEN.token_id] = TOKEN
    credentials = ImageCredentials(lambda: image, Secret(KEY), lambda: 5_000)
    password = base64.b64encode(hmac.digest(KEY.encode(), b"an-id", "sha512")).decode()

    async def log_in() -> ScramExchange:
        exchange = ScramExchange(SHA_256, credentials)
        client = scram("sha256", "an-id", password, is_token=True)
        final = client.send(await exchange.evaluate(next(client)))
        await exchange.evaluate(final)
        return exchange

    for _ in range(2):
        login = asyncio.run(log_in()).login
        assert login is not None
        assert (str(login.principal), login.expires_ms) == ("User:alice", 5_000)
        assert login.principal.token_authenticated


def test_without_a_secret_key_there_are_no_tokens() -> None:
    image = MetadataImage()
    image.tokens[TOKEN.token_id] = TOKEN
    found = asyncio.run(ImageCredentials(lambda: image).of_token(TOKEN.token_id, SHA_256))
    assert found is None


def test_nobody_logs_in_with_a_token_that_has_expired() -> None:
    """The controller removes it up to an hour later."""
    image = MetadataImage()
    image.tokens[TOKEN.token_id] = TOKEN
    credentials = ImageCredentials(lambda: image, Secret(KEY), lambda: 5_001)
    assert asyncio.run(credentials.of_token(TOKEN.token_id, SHA_256)) is None
