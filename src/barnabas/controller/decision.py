"""What a decision is made from, and what it is: records to commit, and the answer to give then.

Each module named for an API has `decide(request, image, context)`, a pure function of the image
as it will be once everything decided before is committed, and `refuse(request, error)`, the answer
of that API's shape to a request that failed as a whole.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Final

from barnabas.config.dynamic import Resolver
from barnabas.controller.contacts import Contact, Contacts
from barnabas.controller.new_topic_settings import NewTopicSettings
from barnabas.metadata.states import BrokerState, Directory
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.schema import Message

MAX_RECORDS: Final = 10_000
"""No request may decide on more records at once, nor name more partitions, as in Kafka."""


@dataclass(slots=True, frozen=True)
class Context:
    """Everything outside the image that a decision may depend on."""

    now_ms: int
    """By a clock that nobody sets: for how long ago something was, not for when."""
    next_offset: int
    cluster_id: str
    controller_id: int
    voter_ids: Collection[int]
    kraft_version: int
    resolver: Resolver
    new_topic_settings: NewTopicSettings
    contacts: Contacts
    random_uuid: Callable[[], bytes]
    random_below: Callable[[int], int]


@dataclass(slots=True, frozen=True)
class Decision:
    """Records that commit together, and the response that becomes true when they have."""

    records: list[Message]
    response: Message
    contact: Contact | None = field(default=None)


def require_bounded(records: list[Message]) -> None:
    if len(records) > MAX_RECORDS:
        raise KafkaError(
            ErrorCode.POLICY_VIOLATION,
            f"The request would need {len(records)} metadata records at once, and {MAX_RECORDS} "
            "are allowed: split it into smaller ones.",
        )


def default_directory(broker: BrokerState | None) -> bytes:
    """Where a new replica goes: a broker with one directory has no choice to make later."""
    if broker is not None and len(broker.log_dirs) == 1:
        return broker.log_dirs[0]
    return Directory.UNASSIGNED
