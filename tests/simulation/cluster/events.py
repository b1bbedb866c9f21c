"""The events of the simulation of a cluster."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

from tests.simulation.world.events import Events

from barnabas.metadata.delta import MetadataDelta
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.states import PartitionRegistration
from barnabas.raft import CommittedBatch

if TYPE_CHECKING:
    from tests.simulation.cluster.host import Host

PartitionKey = tuple[bytes, int]
"""Topic id and partition index."""


class ImageChecker(Protocol):
    """Checks the metadata image of a node after every change."""

    def on_image(self, host: "Host", delta: MetadataDelta, image: MetadataImage) -> None:
        """Raises Violation if a promise is broken."""


class ClusterEvents(Events):
    """Passes every change of the image of a node to its checkers, too."""

    image_checkers: Sequence[ImageChecker] = ()
    newest_image = MetadataImage()
    """The newest image that any node has had, even if it was killed since."""

    def on_image(self, host: "Host", delta: MetadataDelta, image: MetadataImage) -> None:
        if image.offset > self.newest_image.offset:
            self.newest_image = image
        for checker in self.image_checkers:
            self.check(checker.on_image, host, delta, image)


@dataclass(slots=True, frozen=True)
class Committed:
    """A node has read committed batches of the metadata log."""

    host: "Host"
    batches: list[CommittedBatch]

    @property
    def digest_key(self) -> str:
        return f"committed {self.host.name} {self.batches[-1].last_offset}"

    def __str__(self) -> str:
        offset, epoch = self.batches[-1].last_offset, self.batches[-1].epoch
        return f"{self.host.name:<12} has the metadata up to {offset}, epoch {epoch}"


@dataclass(slots=True, frozen=True)
class SnapshotLoaded:
    """A node has loaded a snapshot of the metadata."""

    host: "Host"
    offset: int

    @property
    def digest_key(self) -> str:
        return f"snapshot {self.host.name} {self.offset}"

    def __str__(self) -> str:
        return f"{self.host.name:<12} has loaded a snapshot of the metadata up to {self.offset}"


@dataclass(slots=True, frozen=True)
class BecameController:
    """A node is the active controller; its image is at `offset`."""

    host: "Host"
    epoch: int
    offset: int

    @property
    def digest_key(self) -> str:
        return f"controller {self.host.name} {self.epoch}"

    def __str__(self) -> str:
        return f"{self.host.name:<12} is the active controller of epoch {self.epoch}"


@dataclass(slots=True, frozen=True)
class Appended:
    """A leader has appended to a partition or to the metadata log."""

    host: str
    topic: str
    index: int
    topic_id: bytes
    epoch: int
    first_offset: int
    last_offset: int
    batch: bytes
    is_interrupted: bool = False
    """Whether the process was killed meanwhile: the batch may be in the log."""

    @property
    def digest_key(self) -> str:
        return f"append {self.host} {self.topic} {self.index} {self.epoch} {self.first_offset}"

    def __str__(self) -> str:
        return (
            f"{self.host:<12} appends {self.topic}-{self.index} "
            f"{self.first_offset}..{self.last_offset} in epoch {self.epoch}"
        )


@dataclass(slots=True, frozen=True)
class Replicated:
    """A follower has appended batches of its leader to a compacted log."""

    host: str
    topic: str
    key: PartitionKey
    log_end_offset: int
    """Before the batches."""
    batches: bytes

    @property
    def digest_key(self) -> str:
        return f"replicate {self.host} {self.topic} {self.key[1]} {self.log_end_offset}"

    def __str__(self) -> str:
        return f"{self.host:<12} replicates {self.topic}-{self.key[1]} at {self.log_end_offset}"


@dataclass(slots=True, frozen=True)
class SegmentsReplaced:
    """A node is about to replace segments of a log by cleaned ones, or has done so."""

    host: str
    topic: str
    key: PartitionKey
    base_offsets: tuple[int, ...]
    """Of the segments that are replaced."""
    is_done: bool

    @property
    def digest_key(self) -> str:
        return f"clean {self.host} {self.topic} {self.key[1]} {self.base_offsets} {self.is_done}"

    def __str__(self) -> str:
        offsets = ", ".join(map(str, self.base_offsets))
        verb = "has replaced" if self.is_done else "replaces"
        return f"{self.host:<12} {verb} the segments of {self.topic}-{self.key[1]} at {offsets}"


@dataclass(slots=True, frozen=True)
class TransactionEnded:
    """A producer has the response to the commit or the abort of a transaction."""

    producer: str
    key: PartitionKey
    offsets: tuple[int, ...]
    """Of the acknowledged records of the transaction."""
    is_committed: bool

    @property
    def digest_key(self) -> str:
        return f"transaction {self.producer} {self.offsets} {self.is_committed}"

    def __str__(self) -> str:
        ended = "committed" if self.is_committed else "aborted"
        return f"{self.producer:<12} has {ended} the transaction at {self.offsets}"


class ScannedRecord(NamedTuple):
    """A record as a reader got it."""

    offset: int
    leader_epoch: int
    key: bytes | None
    value: bytes | None


@dataclass(slots=True, frozen=True)
class Scanned:
    """A reader has read a compacted log from an offset to its end, from one replica."""

    reader: str
    host: str
    topic: str
    key: PartitionKey
    start_offset: int
    end_offset: int
    is_committed_only: bool
    records: tuple[ScannedRecord, ...]

    @property
    def digest_key(self) -> str:
        return f"scan {self.reader} {self.host} {self.start_offset} {self.end_offset}"

    def __str__(self) -> str:
        kind = "committed records" if self.is_committed_only else "records"
        return (
            f"{self.reader:<12} has scanned {self.topic}-{self.key[1]} from {self.start_offset} to "
            f"{self.end_offset} on {self.host}: {len(self.records)} {kind}"
        )


@dataclass(slots=True, frozen=True)
class Truncated:
    """A node has removed the end of the log of a partition, or of the metadata log."""

    host: str
    topic: str
    index: int
    topic_id: bytes
    end_offset: int

    @property
    def digest_key(self) -> str:
        return f"truncate {self.host} {self.topic} {self.index} {self.end_offset}"

    def __str__(self) -> str:
        return f"{self.host:<12} truncates {self.topic}-{self.index} to {self.end_offset}"


@dataclass(slots=True, frozen=True)
class Acknowledged:
    """A producer has the acknowledgement of a batch."""

    producer: str
    topic: str
    key: PartitionKey
    base_offset: int
    values: tuple[bytes | None, ...]

    @property
    def digest_key(self) -> str:
        return f"acked {self.producer} {self.topic} {self.key[1]} {self.base_offset}"

    def __str__(self) -> str:
        return (
            f"{self.producer:<12} has {self.topic}-{self.key[1]} {self.base_offset} acknowledged: "
            f"{b' '.join(value or b'-' for value in self.values).decode()}"
        )


@dataclass(slots=True, frozen=True)
class Read:
    """A reader has fetched a batch from the leader or from a follower."""

    reader: str
    host: str
    topic: str
    key: PartitionKey
    base_offset: int
    next_offset: int
    batch: bytes

    @property
    def digest_key(self) -> str:
        return f"read {self.reader} {self.host} {self.topic} {self.key[1]} {self.base_offset}"

    def __str__(self) -> str:
        return (
            f"{self.reader:<12} reads {self.topic}-{self.key[1]} "
            f"{self.base_offset}..{self.next_offset - 1} from {self.host}"
        )


@dataclass(slots=True, frozen=True)
class LatestOffset:
    """A leader has returned the latest offset of a partition."""

    reader: str
    host: str
    topic: str
    key: PartitionKey
    leader_epoch: int
    requested_ms: int
    offset: int

    @property
    def digest_key(self) -> str:
        return f"end {self.reader} {self.topic} {self.key[1]} {self.offset}"

    def __str__(self) -> str:
        return (
            f"{self.reader:<12} gets from {self.host} the latest offset {self.offset} "
            f"of {self.topic}-{self.key[1]}, epoch {self.leader_epoch}"
        )


class MetadataTrace:
    """Adds a line to the trace for every partition and broker that has changed."""

    def __init__(self, events: ClusterEvents) -> None:
        self._events = events
        self._newest = -1

    def on_image(self, _: "Host", delta: MetadataDelta, image: MetadataImage) -> None:
        if image.offset <= self._newest:
            return
        self._newest = image.offset
        for (topic_id, index), state in delta.partitions_changed.items():
            topic = image.topics.by_id(topic_id)
            if topic is not None:
                self._events.note("metadata", f"{topic.name}-{index}: {_describe(state)}")
        for broker_id in sorted(delta.brokers_changed):
            broker = image.brokers.get(broker_id)
            if broker is not None:
                fenced = "unfenced" if broker.active else "fenced"
                self._events.note("metadata", f"broker {broker_id}, epoch {broker.epoch}: {fenced}")


def _describe(state: PartitionRegistration) -> str:
    text = (
        f"leader {state.leader} in epoch {state.leader_epoch}.{state.partition_epoch}, in sync "
        f"{state.isr} of {state.replicas}, eligible {state.elr} {state.last_known_elr}"
    )
    if state.is_reassigning:
        text += f", adding {state.adding}, removing {state.removing}"
    return text
