"""AlterUserScramCredentials: decisions and errors."""

import hashlib
import hmac
from typing import Any

import pytest
from tests.controller.conftest import World

from barnabas.metadata.features import METADATA_VERSION, SCRAM_FROM
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.metadata_records import FeatureLevelRecord
from barnabas.wire.messages.scram import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)

SHA_256, SHA_512 = 1, 2


def upsertion(name: str, mechanism: int = SHA_256, iterations: int = 4096) -> Any:
    return ScramCredentialUpsertion(
        name=name,
        mechanism=mechanism,
        iterations=iterations,
        salt=b"salt",
        salted_password=hashlib.pbkdf2_hmac("sha256", b"password", b"salt", iterations),
    )


def deletion(name: str, mechanism: int = SHA_256) -> Any:
    return ScramCredentialDeletion(name=name, mechanism=mechanism)


def alter(world: World, *changes: Any) -> dict[str, ErrorCode]:
    """Returns the error of each user."""
    request = AlterUserScramCredentialsRequest(
        deletions=[change for change in changes if isinstance(change, ScramCredentialDeletion)],
        upsertions=[change for change in changes if isinstance(change, ScramCredentialUpsertion)],
    )
    response: Any = world.decide(request).response
    assert all(bool(result.error_message) == bool(result.error_code) for result in response.results)
    return {result.user: ErrorCode.of(result.error_code) for result in response.results}


def test_keys_of_the_salted_password_are_stored(one_broker: World) -> None:
    assert alter(one_broker, upsertion("alice")) == {"alice": ErrorCode.NONE}
    credential = one_broker.image.scram["alice", SHA_256]
    salted = hashlib.pbkdf2_hmac("sha256", b"password", b"salt", 4096)
    client_key = hmac.digest(salted, b"Client Key", "sha256")
    assert credential.salt == b"salt"
    assert credential.iterations == 4096
    assert credential.stored_key == hashlib.sha256(client_key).digest()
    assert credential.server_key == hmac.digest(salted, b"Server Key", "sha256")


def test_a_user_has_a_credential_for_each_mechanism(one_broker: World) -> None:
    alter(one_broker, upsertion("alice", SHA_256))
    alter(one_broker, upsertion("alice", SHA_512))
    assert alter(one_broker, deletion("alice", SHA_256)) == {"alice": ErrorCode.NONE}
    assert list(one_broker.image.scram) == [("alice", SHA_512)]


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (upsertion(""), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (deletion(""), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (upsertion("bob", iterations=4095), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (upsertion("bob", iterations=16385), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (upsertion("bob", mechanism=0), ErrorCode.UNSUPPORTED_SASL_MECHANISM),
        (upsertion("bob", mechanism=3), ErrorCode.UNSUPPORTED_SASL_MECHANISM),
        (deletion("bob", mechanism=3), ErrorCode.UNSUPPORTED_SASL_MECHANISM),
        (deletion("bob"), ErrorCode.RESOURCE_NOT_FOUND),
        (deletion("carol", SHA_512), ErrorCode.RESOURCE_NOT_FOUND),
    ],
)
def test_an_invalid_change_fails_alone(one_broker: World, change: Any, error: ErrorCode) -> None:
    alter(one_broker, upsertion("carol"))
    results = alter(one_broker, change, upsertion("alice"))
    assert results == {change.name: error, "alice": ErrorCode.NONE}
    assert set(one_broker.image.scram) == {("alice", SHA_256), ("carol", SHA_256)}


@pytest.mark.parametrize(
    "changes",
    [
        (upsertion("alice"), upsertion("alice", SHA_512)),
        (deletion("alice"), upsertion("alice")),
        (deletion("alice"), deletion("alice", SHA_512)),
    ],
)
def test_a_user_is_changed_once_in_a_request(one_broker: World, changes: tuple[Any, Any]) -> None:
    alter(one_broker, upsertion("alice"))
    before = dict(one_broker.image.scram)
    assert alter(one_broker, *changes) == {"alice": ErrorCode.DUPLICATE_RESOURCE}
    assert one_broker.image.scram == before


def test_an_old_metadata_version_has_no_scram_users(one_broker: World) -> None:
    one_broker.apply(FeatureLevelRecord(name=METADATA_VERSION, feature_level=SCRAM_FROM - 1))
    with pytest.raises(KafkaError) as raised:
        alter(one_broker, upsertion("alice"))
    assert raised.value.code is ErrorCode.UNSUPPORTED_VERSION
