"""What a decision of the controller depends on besides the image, and the shape it has.

Each module named after an API has `decide(request, image, context)`: a pure function of the
speculative image, in which everything decided before is committed already. It raises KafkaError
if the request fails as a whole.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Final

from barnabas.config.dynamic import Resolver
from barnabas.controller.effective_topic_configs import EffectiveTopicConfigs
from barnabas.controller.heartbeat_tracker import BrokerContact, BrokerHeartbeatTracker
from barnabas.decision import Decision
from barnabas.metadata.states import BrokerRegistration, DirectoryId
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.schema import Message

MAX_RECORDS: Final = 10_000
"""The limit on the records of one decision, and on the partitions in one request, as in Kafka."""


@dataclass(slots=True, frozen=True)
class ControllerContext:
    """Everything besides the image that a decision may depend on."""

    now_ms: int
    """By a monotonic clock, for durations only."""
    next_offset: int
    cluster_id: str
    controller_id: int
    voter_ids: Collection[int]
    kraft_version: int
    resolver: Resolver
    topic_configs: EffectiveTopicConfigs
    heartbeats: BrokerHeartbeatTracker
    random_uuid: Callable[[], bytes]
    random_below: Callable[[int], int]


ControllerDecision = Decision[Message, Message, BrokerContact]
"""Records that commit together; the only effect renews the session of a broker."""


def require_record_limit(records: list[Message]) -> None:
    if len(records) > MAX_RECORDS:
        raise KafkaError(
            ErrorCode.POLICY_VIOLATION,
            f"The request needs {len(records)} metadata records at once, the limit is "
            f"{MAX_RECORDS}: split it into smaller requests.",
        )


def default_directory(broker: BrokerRegistration | None) -> bytes:
    """Returns the directory of a new replica; a broker with one directory needs no choice."""
    if broker is not None and len(broker.log_dirs) == 1:
        return broker.log_dirs[0]
    return DirectoryId.UNASSIGNED
