"""SCRAM credentials: what is stored of a password (RFC 5802).

A password is never stored. The two stored keys are derived from the salted password. A broker
checks the proof of a client with them, and nobody can log in with them.
"""

import hashlib
import hmac
from enum import IntEnum
from typing import Final

from barnabas.metadata.states import ScramCredential

MIN_ITERATIONS: Final = 4096
MAX_ITERATIONS: Final = 16384
"""A client computes this many hashes at every login."""


class ScramMechanismCode(IntEnum):
    """The SCRAM mechanisms, with their codes in requests and in the metadata log."""

    SCRAM_SHA_256 = 1
    SCRAM_SHA_512 = 2

    @property
    def sasl_name(self) -> str:
        """The name of the mechanism in SASL and in settings, such as SCRAM-SHA-256."""
        return self.name.replace("_", "-")

    @property
    def digest(self) -> str:
        """The name of the hash function, as `hashlib` has it."""
        return "sha256" if self is ScramMechanismCode.SCRAM_SHA_256 else "sha512"


def salt_password(
    mechanism: ScramMechanismCode, password: bytes, salt: bytes, iterations: int
) -> bytes:
    """Returns the salted password. It takes a few milliseconds."""
    return hashlib.pbkdf2_hmac(mechanism.digest, password, salt, iterations)


def derive_credential(
    mechanism: ScramMechanismCode, salted_password: bytes, salt: bytes, iterations: int
) -> ScramCredential:
    """Returns the credential to store for a salted password."""
    digest = mechanism.digest
    client_key = hmac.digest(salted_password, b"Client Key", digest)
    return ScramCredential(
        salt=salt,
        stored_key=hashlib.new(digest, client_key).digest(),
        server_key=hmac.digest(salted_password, b"Server Key", digest),
        iterations=iterations,
    )
