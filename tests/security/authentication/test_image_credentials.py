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


def salt_of(credentials: ImageCredentials, user: str) -> bytes:
    return credentials.of_nobody(user, SHA_256).salt


def users(*names: str) -> MetadataImage:
    image = MetadataImage()
    for name in names:
        image.scram[name, SHA_256.value] = a_credential(SHA_256, f"password of {name}")
    return image


def test_an_unknown_user_gets_the_same_challenge_from_all_brokers_and_after_a_restart() -> None:
    """A user who exists does, so a challenge that differs shows that there is no such user."""
    image = users("alice", "bob")
    other_broker = MetadataImage()
    other_broker.scram = dict(reversed(image.scram.items()))
    for key in (None, Secret(KEY)):
        credentials = ImageCredentials(lambda: image, key)
        restarted = ImageCredentials(lambda: other_broker, key)
        assert salt_of(credentials, "carol") == salt_of(restarted, "carol")
        assert salt_of(credentials, "dave") != salt_of(credentials, "carol")
        assert credentials.of_nobody("carol", SHA_512).salt != salt_of(credentials, "carol")


def test_challenges_of_unknown_users_do_not_change_with_the_users_if_there_is_a_secret_key() -> (
    None
):
    image = users("alice")
    credentials = ImageCredentials(lambda: image, Secret(KEY))
    before = salt_of(credentials, "carol")
    image.scram.update(users("bob", "dave").scram)
    credentials.on_scram_change()
    assert salt_of(credentials, "carol") == before
    assert salt_of(ImageCredentials(lambda: image, Secret("other")), "carol") != before


def test_no_user_knows_what_the_challenges_are_derived_from() -> None:
    alone, together = users("alice"), users("alice", "bob")
    assert salt_of(ImageCredentials(lambda: alone), "carol") != salt_of(
        ImageCredentials(lambda: together), "carol"
    )


def test_challenges_of_unknown_users_follow_the_credentials() -> None:
    image = MetadataImage()
    credentials = ImageCredentials(lambda: image)
    assert len(salt_of(credentials, "carol")) == 32
    image.scram["alice", SHA_256.value] = a_credential(SHA_256, "x", b"4xnbf0w3", 8192)
    credentials.on_scram_change()
    assert len(salt_of(credentials, "carol")) == 8


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
