"""Topic, directory and incarnation ids: 16 bytes on the wire, 22 characters in text.

An id is plain `bytes`, because it is compared, hashed and copied far more often than printed.
"""

import base64
import binascii
import os
from collections.abc import Callable

SIZE_BYTES = 16

ZERO = bytes(SIZE_BYTES)
"""No id: the value of a field whose id is unknown."""

METADATA_TOPIC_ID = ZERO[:-1] + b"\x01"
"""The id of `__cluster_metadata`, reserved so that no topic gets it."""


def random_uuid(random_bytes: Callable[[int], bytes] = os.urandom) -> bytes:
    """Returns a new version 4 id, never reserved and never starting with `-` in its text.

    A leading dash would make the text look like an option on a command line.
    """
    while True:
        drawn = bytearray(random_bytes(SIZE_BYTES))
        drawn[6] = drawn[6] & 0x0F | 0x40
        drawn[8] = drawn[8] & 0x3F | 0x80
        if not to_text(drawn).startswith("-"):
            return bytes(drawn)


def to_text(uuid: bytes | bytearray) -> str:
    """Returns the id as Kafka prints it: base64url without padding."""
    return base64.urlsafe_b64encode(uuid).rstrip(b"=").decode()


def from_text(text: str) -> bytes:
    """Parses an id as Kafka prints it. Raises ValueError if it is not one."""
    try:
        uuid = base64.b64decode(text + "==", altchars=b"-_", validate=True)
    except (binascii.Error, ValueError) as error:
        raise ValueError(f"{text!r} is not an id: it must be base64url") from error
    if len(uuid) != SIZE_BYTES:
        raise ValueError(f"{text!r} is not an id: it must be {SIZE_BYTES} bytes in base64url")
    return uuid
