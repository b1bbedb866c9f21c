"""What happens in a cluster, for the checkers and for the trace."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from tests.simulation.events import Events

from barnabas.metadata.delta import MetadataDelta
from barnabas.metadata.image import MetadataImage
from barnabas.raft import CommittedBatch

if TYPE_CHECKING:
    from tests.simulation.cluster.hosts import Host

Key = tuple[bytes, int]
"""Of a partition: topic id and index."""


class Onlooker(Protocol):
    """Looks at the image of a node after each change of it."""

    def look(self, host: "Host", delta: MetadataDelta, image: MetadataImage) -> None:
        """Violation if a promise is broken."""


class Happenings(Events):
    """Tells the checkers also of every change of a node's image."""

    onlookers: Sequence[Onlooker] = ()

    def published(self, host: "Host", delta: MetadataDelta, image: MetadataImage) -> None:
        for onlooker in self.onlookers:
            self.checked(onlooker.look, host, delta, image)


@dataclass(slots=True, frozen=True)
class Committed:
    """A node learnt what was committed next in the metadata log."""

    host: "Host"
    batches: list[CommittedBatch]

    @property
    def mark(self) -> str:
        return f"committed {self.host.name} {self.batches[-1].last_offset}"

    def __str__(self) -> str:
        offset, epoch = self.batches[-1].last_offset, self.batches[-1].epoch
        return f"{self.host.name:<12} knows the metadata up to {offset}, epoch {epoch}"


@dataclass(slots=True, frozen=True)
class Replaced:
    """A node took over a snapshot of the metadata."""

    host: "Host"
    offset: int

    @property
    def mark(self) -> str:
        return f"replaced {self.host.name} {self.offset}"

    def __str__(self) -> str:
        return f"{self.host.name:<12} has a snapshot of the metadata up to {self.offset}"


@dataclass(slots=True, frozen=True)
class Led:
    """A node is the active controller; its image has come to `offset`."""

    host: "Host"
    epoch: int
    offset: int

    @property
    def mark(self) -> str:
        return f"led {self.host.name} {self.epoch}"

    def __str__(self) -> str:
        return f"{self.host.name:<12} is the active controller of epoch {self.epoch}"


@dataclass(slots=True, frozen=True)
class Appended:
    """A leader appended to a log, of a partition or of the metadata."""

    host: str
    topic: str
    index: int
    topic_id: bytes
    epoch: int
    first_offset: int
    last_offset: int

    @property
    def mark(self) -> str:
        return f"append {self.host} {self.topic} {self.index} {self.epoch} {self.first_offset}"

    def __str__(self) -> str:
        return (
            f"{self.host:<12} appends {self.topic}-{self.index} "
            f"{self.first_offset}..{self.last_offset} in epoch {self.epoch}"
        )


@dataclass(slots=True, frozen=True)
class Acknowledged:
    """A producer was told that its batch is safe."""

    producer: str
    topic: str
    key: Key
    base_offset: int
    values: tuple[bytes, ...]

    @property
    def mark(self) -> str:
        return f"acked {self.producer} {self.topic} {self.key[1]} {self.base_offset}"

    def __str__(self) -> str:
        return (
            f"{self.producer:<12} has {self.topic}-{self.key[1]} {self.base_offset} acknowledged: "
            f"{b' '.join(self.values).decode()}"
        )


@dataclass(slots=True, frozen=True)
class Read:
    """A reader was given a batch, by the leader or by a follower."""

    reader: str
    host: str
    topic: str
    key: Key
    base_offset: int
    next_offset: int
    batch: bytes

    @property
    def mark(self) -> str:
        return f"read {self.reader} {self.host} {self.topic} {self.key[1]} {self.base_offset}"

    def __str__(self) -> str:
        return (
            f"{self.reader:<12} reads {self.topic}-{self.key[1]} "
            f"{self.base_offset}..{self.next_offset - 1} from {self.host}"
        )


@dataclass(slots=True, frozen=True)
class EndTold:
    """A leader told where its partition ends for readers."""

    reader: str
    host: str
    topic: str
    key: Key
    leader_epoch: int
    asked_ms: int
    offset: int

    @property
    def mark(self) -> str:
        return f"end {self.reader} {self.topic} {self.key[1]} {self.offset}"

    def __str__(self) -> str:
        return (
            f"{self.reader:<12} is told by {self.host} that {self.topic}-{self.key[1]} "
            f"ends at {self.offset}, epoch {self.leader_epoch}"
        )
