"""The first SCRAM users of a cluster, as `storage format --add-scram` names them.

SCRAM-SHA-256=[name=alice,password=secret]
SCRAM-SHA-512=[name=alice,iterations=8192,salt="bWFsdA==",saltedpassword="c2FsdGVk"]

Salt and salted password are in base64; a value can be quoted.
"""

import base64
import binascii
import re
import secrets
from collections.abc import Iterable, Mapping
from typing import Final

from barnabas.cli.operations.errors import CommandError
from barnabas.metadata.snapshot import scram_record
from barnabas.security.scram_credentials import (
    MAX_ITERATIONS,
    MIN_ITERATIONS,
    ScramMechanismCode,
    derive_credential,
    salt_password,
)
from barnabas.wire.schema import Message

_SALT_BYTES: Final = 32
_KEYS: Final = ("name", "password", "iterations", "salt", "saltedpassword")
_CREDENTIAL: Final = re.compile(r"([^=]+)=\[(.*)\]")
_PROPERTY: Final = re.compile(r'\s*([a-z]+)\s*=\s*("[^"]*"|[^,"]*)\s*(?:,|$)')


def parse_scram_users(arguments: Iterable[str]) -> list[Message]:
    """Returns the records of the users. Raises CommandError if one cannot be added.

    Errors name no passwords.
    """
    records: dict[tuple[str, ScramMechanismCode], Message] = {}
    for argument in arguments:
        match = _CREDENTIAL.fullmatch(argument)
        if match is None:
            raise CommandError(
                "--add-scram needs the form SCRAM-SHA-256=[name=alice,password=secret]"
            )
        mechanism = _mechanism(match[1])
        properties = _properties(match[2])
        user = properties.get("name")
        if not user:
            raise CommandError("You must supply 'name' to add-scram")
        if (user, mechanism) in records:
            raise CommandError(f"{mechanism.sasl_name} of user {user} is given twice")
        records[user, mechanism] = _record(user, mechanism, properties)
    return list(records.values())


def _mechanism(text: str) -> ScramMechanismCode:
    for mechanism in ScramMechanismCode:
        if mechanism.sasl_name == text:
            return mechanism
    raise CommandError(f"The add-scram mechanism {text} is not supported.")


def _properties(text: str) -> dict[str, str]:
    properties: dict[str, str] = {}
    position = 0
    while position < len(text):
        match = _PROPERTY.match(text, position)
        if match is None or match[1] not in _KEYS:
            raise CommandError(f"--add-scram takes {', '.join(_KEYS)}, each as key=value")
        properties[match[1]] = match[2].strip('"')
        position = match.end()
    return properties


def _record(user: str, mechanism: ScramMechanismCode, properties: Mapping[str, str]) -> Message:
    password, salted_text = properties.get("password"), properties.get("saltedpassword")
    if (password is None) == (salted_text is None):
        raise CommandError(
            "You must only supply one of 'password' or 'saltedpassword' to add-scram"
        )
    iterations = _iterations(properties.get("iterations", str(MIN_ITERATIONS)))
    salt = _decode("salt", properties["salt"]) if "salt" in properties else None
    if salted_text is not None:
        if salt is None:
            raise CommandError("You must supply 'salt' with 'saltedpassword' to add-scram")
        salted_password = _decode("saltedpassword", salted_text)
    else:
        salt = salt or secrets.token_bytes(_SALT_BYTES)
        salted_password = salt_password(mechanism, (password or "").encode(), salt, iterations)
    credential = derive_credential(mechanism, salted_password, salt, iterations)
    return scram_record(user, mechanism, credential)


def _iterations(text: str) -> int:
    iterations = int(text) if text.isascii() and text.isdigit() else -1
    if not MIN_ITERATIONS <= iterations <= MAX_ITERATIONS:
        raise CommandError(
            f"The 'iterations' value must be >= {MIN_ITERATIONS} and <= {MAX_ITERATIONS} for "
            "add-scram"
        )
    return iterations


def _decode(name: str, text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise CommandError(f"The '{name}' of add-scram is not base64") from None
