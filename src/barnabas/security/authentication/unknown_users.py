"""Challenges for SCRAM users that do not exist, which look like those of users that do.

Every broker must challenge a name in the same way, also after a restart: a salt that changes shows
that there is no such user. So the salt is derived from the name with a key that all brokers have
and no client knows: `delegation.token.secret.key`, or else stored keys of several users.
"""

import hashlib
import heapq
import hmac
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from barnabas.config import Secret
from barnabas.metadata.states import ScramCredential
from barnabas.security.scram_credentials import MIN_ITERATIONS, ScramMechanismCode

_PURPOSE = b"challenges of unknown SCRAM users"
_KEY_USERS = 8
"""A user knows the stored key of one credential, and cannot derive the key from it. With those of
all users, each new user would change every challenge."""

_DIGITS = b"0123456789abcdefghijklmnopqrstuvwxyz"
_DEFAULT_EXAMPLE = ScramCredential(bytes(32), b"", b"", MIN_ITERATIONS)
"""What Barnabas's tools create."""

Credentials = Mapping[tuple[str, int], ScramCredential]
"""By user, and code of the mechanism."""


@dataclass(slots=True, frozen=True)
class _Basis:
    """What all challenges are derived from, until the credentials change."""

    key: bytes
    examples: Mapping[int, ScramCredential]


class UnknownUsers:
    """Derives credentials that no password fits."""

    def __init__(self, credentials: Callable[[], Credentials], secret_key: Secret | None) -> None:
        self._credentials = credentials
        self._secret_key = secret_key
        self._no_users_key = os.urandom(32)  # without users, there is nothing to hide
        self._basis: _Basis | None = None

    def on_change(self) -> None:
        """Called when the credentials of users have changed."""
        self._basis = None

    def credential(self, user: str, mechanism: ScramMechanismCode) -> ScramCredential:
        """Returns a credential with the iterations and the form of the salt of another user."""
        if self._basis is None:
            self._basis = _Basis(self._key(), _examples(self._credentials()))
        example = self._basis.examples.get(mechanism.value, _DEFAULT_EXAMPLE)
        seed = hmac.digest(self._basis.key, f"{mechanism.name} {user}".encode(), "sha512")
        size = hashlib.new(mechanism.digest).digest_size
        material = hashlib.shake_256(seed).digest(len(example.salt) + 2 * size)
        salt = material[2 * size :]
        if example.salt.isalnum():  # Kafka's tools write random digits and letters
            salt = bytes(_DIGITS[byte % len(_DIGITS)] for byte in salt)
        return ScramCredential(salt, material[:size], material[size : 2 * size], example.iterations)

    def _key(self) -> bytes:
        if self._secret_key is not None:
            return hmac.digest(self._secret_key.reveal().encode(), _PURPOSE, "sha256")
        stored_keys = (credential.stored_key for credential in self._credentials().values())
        of_some = heapq.nsmallest(_KEY_USERS, stored_keys)
        return hmac.digest(b"".join(of_some) or self._no_users_key, _PURPOSE, "sha256")


def _examples(credentials: Credentials) -> dict[int, ScramCredential]:
    """Returns a credential of each mechanism: on all brokers the same."""
    examples: dict[int, ScramCredential] = {}
    for (_, mechanism), credential in credentials.items():
        found = examples.get(mechanism)
        if found is None or credential.stored_key < found.stored_key:
            examples[mechanism] = credential
    return examples
