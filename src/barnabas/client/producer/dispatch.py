"""What passes between the sender and those around it."""

from dataclasses import dataclass, field
from typing import Protocol

from barnabas.client.errors import KafkaError
from barnabas.client.producer._batch import Batch
from barnabas.client.producer.lane import Outbound
from barnabas.client.values import TopicPartitionTuple


class Gate(Protocol):
    """A transaction, as the sender sees it."""

    def admits(self, place: TopicPartitionTuple) -> bool:
        """Whether a partition may be written to now."""

    def refused(self, error: KafkaError) -> None:
        """A batch of it was given up."""


@dataclass(slots=True, frozen=True)
class Outcome:
    """A batch is over: appended at an offset (-1 unknown), or given up for an error."""

    batch: Batch
    error: KafkaError | None
    base_offset: int = -1
    append_time_ms: int = -1


@dataclass(slots=True, eq=False)
class Dispatch:
    """One request: batches of different partitions to one node."""

    node_id: int
    sent_s: float
    batches: dict[TopicPartitionTuple, Outbound] = field(default_factory=dict)
    size_bytes: int = 0


@dataclass(slots=True, frozen=True)
class Answer:
    """What a response says of one partition."""

    error: int
    base_offset: int = -1
    append_time_ms: int = -1
    message: str | None = None
    leader: tuple[int, int] | None = None  # node and epoch, told by a former leader (KIP-951)
