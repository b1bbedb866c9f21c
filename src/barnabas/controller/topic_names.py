"""Which names a topic may have."""

import re
from typing import Final

from barnabas.metadata.image import MetadataImage
from barnabas.wire.errors import ErrorCode, KafkaError

MAX_LENGTH: Final = 249  # with "-", five digits and ".delete" it is still a file name

_LEGAL = re.compile(r"[a-zA-Z0-9._-]+")


def is_valid_topic_name(name: str) -> bool:
    """Whether the name can be a directory and a metric."""
    return len(name) <= MAX_LENGTH and name not in (".", "..") and bool(_LEGAL.fullmatch(name))


def validate_topic_name(name: str) -> None:
    """INVALID_TOPIC_EXCEPTION unless the name is valid, and why it is not."""
    if not name:
        raise _invalid("the empty string is not a topic name")
    if name in (".", ".."):
        raise _invalid(f"'{name}' is not a topic name")
    if len(name) > MAX_LENGTH:
        raise _invalid(f"'{name}' is {len(name)} characters long, the most is {MAX_LENGTH}")
    if not _LEGAL.fullmatch(name):
        raise _invalid(f"'{name}' has characters other than ASCII letters, digits, '.', '_', '-'")


def require_name_available(name: str, image: MetadataImage) -> None:
    """TOPIC_ALREADY_EXISTS, or the name differs from an existing one in "." and "_" only."""
    if image.topics.by_name(name) is not None:
        raise KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
    colliding = image.topics.find_colliding(name)
    if colliding is not None:
        raise KafkaError(
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            f"Topic '{name}' collides with existing topic '{colliding}': "
            "in metric names '.' and '_' are the same.",
        )


def _invalid(reason: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: {reason}.")
