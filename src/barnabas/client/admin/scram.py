"""SCRAM credentials of users: describe, set, delete."""

import hashlib
import secrets
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass
from typing import Any

from barnabas.client.admin.model import ScramMechanism
from barnabas.client.admin.requests import UNSET, AdminRequests, require_list
from barnabas.client.admin.results import Results, error_of
from barnabas.client.errors import KafkaError
from barnabas.wire.messages.scram import (
    AlterUserScramCredentialsRequest,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResult,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
    UserName,
)

_HASHES = {ScramMechanism.SCRAM_SHA_256: "sha256", ScramMechanism.SCRAM_SHA_512: "sha512"}
_SALT_BYTES = 32


@dataclass(slots=True, eq=False)
class ScramCredentialInfo:
    """The mechanism of a credential, and the number of its hash iterations."""

    mechanism: ScramMechanism
    iterations: int


@dataclass(slots=True, eq=False)
class UserScramCredentialsDescription:
    user: str
    scram_credential_infos: list[ScramCredentialInfo]


class UserScramCredentialAlteration:
    """A change of one credential of a user."""

    def __init__(self, user: str) -> None:
        self.user = user


class UserScramCredentialUpsertion(UserScramCredentialAlteration):
    """Sets a password; without a salt it gets a random one."""

    def __init__(
        self,
        user: str,
        scram_credential_info: ScramCredentialInfo,
        password: bytes,
        salt: bytes | None = None,
    ) -> None:
        super().__init__(user)
        self.scram_credential_info = scram_credential_info
        self.password = password
        self.salt = salt


class UserScramCredentialDeletion(UserScramCredentialAlteration):
    """Deletes the credential of a mechanism."""

    def __init__(self, user: str, mechanism: ScramMechanism) -> None:
        super().__init__(user)
        self.mechanism = mechanism


Users = Results[str, UserScramCredentialsDescription]


def describe_user_scram_credentials(
    admin: AdminRequests, users: list[str] | None = None, *, request_timeout: float = UNSET
) -> Coroutine[Any, Any, Users]:
    """Returns mechanisms and iterations of users' credentials, by user; never passwords.

    Without `users`, all users with credentials are described.
    """
    if users is not None:
        require_list("users", users, str, filled=False)
        if not all(users):
            raise ValueError("the name of a user must not be empty")
    named = None if users is None else [UserName(name=user) for user in users]
    request = DescribeUserScramCredentialsRequest(users=named)
    deadline = admin.deadline(request_timeout)

    async def describe() -> Users:
        response = await admin.send_to_controller(request, deadline)
        return Results({result.user: _described(result) for result in response.results})

    return describe()


def alter_user_scram_credentials(
    admin: AdminRequests,
    alterations: list[UserScramCredentialAlteration],
    *,
    request_timeout: float = UNSET,
) -> Coroutine[Any, Any, Results[str, None]]:
    """Sets and deletes credentials; results are by user.

    Passwords are salted and hashed in this process, and are not sent.
    """
    require_list("alterations", alterations, UserScramCredentialAlteration)
    upsertions: list[ScramCredentialUpsertion] = []
    deletions: list[ScramCredentialDeletion] = []
    for alteration in alterations:
        if not isinstance(alteration.user, str):
            raise TypeError(f"the user name {alteration.user!r} is not a string")
        if not alteration.user:
            raise ValueError("the name of a user must not be empty")
        match alteration:
            case UserScramCredentialUpsertion():
                upsertions.append(_upsertion(alteration))
            case UserScramCredentialDeletion():
                deletions.append(_deletion(alteration))
            case _:
                raise TypeError(f"{alteration!r} is neither an upsertion nor a deletion")
    deadline = admin.deadline(request_timeout)

    async def exchange(node: int | None, users: list[str]) -> Mapping[str, KafkaError | None]:
        left = set(users)
        request = AlterUserScramCredentialsRequest(
            upsertions=[change for change in upsertions if change.name in left],
            deletions=[change for change in deletions if change.name in left],
        )
        response = await admin.send(request, node, deadline=deadline)
        return {result.user: error_of(result) for result in response.results}

    users = [alteration.user for alteration in alterations]
    return admin.route_to_controller(users, exchange, deadline)


def _upsertion(upsertion: UserScramCredentialUpsertion) -> ScramCredentialUpsertion:
    info, salt = upsertion.scram_credential_info, upsertion.salt
    if not isinstance(upsertion.password, bytes) or not isinstance(salt, bytes | None):
        raise TypeError("passwords and salts must be bytes")
    if not upsertion.password or salt == b"":
        raise ValueError("passwords and salts must not be empty")
    if not isinstance(info, ScramCredentialInfo):
        raise TypeError(f"{info!r} is not a ScramCredentialInfo")
    if info.iterations < 1:
        raise ValueError(f"iterations must be positive, not {info.iterations}")
    salt = salt or secrets.token_bytes(_SALT_BYTES)
    algorithm = _algorithm(info.mechanism)
    return ScramCredentialUpsertion(
        name=upsertion.user,
        mechanism=info.mechanism.value,
        iterations=info.iterations,
        salt=salt,
        salted_password=hashlib.pbkdf2_hmac(algorithm, upsertion.password, salt, info.iterations),
    )


def _deletion(deletion: UserScramCredentialDeletion) -> ScramCredentialDeletion:
    _algorithm(deletion.mechanism)
    return ScramCredentialDeletion(name=deletion.user, mechanism=deletion.mechanism.value)


def _algorithm(mechanism: ScramMechanism) -> str:
    if not isinstance(mechanism, ScramMechanism):
        raise TypeError(f"{mechanism!r} is not a ScramMechanism")
    if mechanism not in _HASHES:
        raise ValueError(f"{mechanism} has no credentials")
    return _HASHES[mechanism]


def _described(
    result: DescribeUserScramCredentialsResult,
) -> UserScramCredentialsDescription | KafkaError:
    return error_of(result) or UserScramCredentialsDescription(
        result.user,
        [
            ScramCredentialInfo(ScramMechanism(info.mechanism), info.iterations)
            for info in result.credential_infos
        ],
    )
