"""The valid names of topics."""

import re
from typing import Final

from barnabas.metadata.image import MetadataImage
from barnabas.wire.errors import ErrorCode, KafkaError

MAX_LENGTH: Final = 249  # with "-", five digits and ".delete" it is still a file name

_LEGAL = re.compile(r"[a-zA-Z0-9._-]+")


def is_valid_topic_name(name: str) -> bool:
    """Whether the name can be that of a directory and of a metric."""
    return len(name) <= MAX_LENGTH and name not in (".", "..") and bool(_LEGAL.fullmatch(name))


def validate_topic_name(name: str) -> None:
    """Raises KafkaError INVALID_TOPIC_EXCEPTION if the name is not valid."""
    if not name:
        raise _invalid("the empty string is not allowed")
    if name in (".", ".."):
        raise _invalid(f"'{name}' is not allowed")
    if len(name) > MAX_LENGTH:
        raise _invalid(f"the length of '{name}' is longer than the max allowed length {MAX_LENGTH}")
    if not _LEGAL.fullmatch(name):
        raise _invalid(
            f"'{name}' contains one or more characters other than ASCII alphanumerics, '.', '_' "
            "and '-'"
        )


def require_name_available(name: str, image: MetadataImage) -> None:
    """Raises KafkaError if the topic exists, or if the name collides with an existing one."""
    if image.topics.by_name(name) is not None:
        raise KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
    colliding = image.topics.find_colliding(name)
    if colliding is not None:
        raise KafkaError(
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            f"Topic '{name}' collides with existing topic: {colliding}",
        )


def _invalid(reason: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: {reason}")
