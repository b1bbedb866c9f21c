"""The image: everything the cluster knows, as the metadata records up to an offset say it.

Applying a record never fails and costs no more than the record: a record about something the
image does not have is ignored. Images copy cheaply, because the values in them are frozen and
shared; what must change inside a shared topic is copied at its first change.
"""

from collections.abc import Iterator

from barnabas.metadata.delta import MetadataDelta
from barnabas.metadata.features import (
    ELIGIBLE_LEADER_REPLICAS_VERSION,
    METADATA_VERSION,
    MIN_METADATA_LEVEL,
)
from barnabas.metadata.partition_index import PartitionIndex
from barnabas.metadata.replay import REPLAY_FUNCTIONS
from barnabas.metadata.snapshot import snapshot_records
from barnabas.metadata.states import (
    AclEntry,
    BrokerRegistration,
    ConfigResource,
    ControllerRegistration,
    DelegationToken,
    PartitionRegistration,
    QuotaEntity,
    ScramCredential,
    TopicImage,
)
from barnabas.wire.schema import Message


class TopicsImage:
    """The topics of an image, found by id, by name, and by names that look alike."""

    __slots__ = ("_by_id", "_by_name", "_index", "_lookalikes", "_owned")

    def __init__(self) -> None:
        self._by_id: dict[bytes, TopicImage] = {}
        self._by_name: dict[str, TopicImage] = {}
        # Names that differ only in "." and "_" would share a metric name, so they collide.
        self._lookalikes: dict[str, set[str]] = {}
        # Topics whose partitions no other image shares.
        self._owned: set[bytes] = set()
        self._index: PartitionIndex | None = None

    def by_name(self, name: str) -> TopicImage | None:
        return self._by_name.get(name)

    def by_id(self, topic_id: bytes) -> TopicImage | None:
        return self._by_id.get(topic_id)

    def find_colliding(self, name: str) -> str | None:
        """An existing topic whose name differs from `name` at most in "." and "_"."""
        return next(iter(self._lookalikes.get(_plain(name), ())), None)

    @property
    def index(self) -> PartitionIndex:
        """Partitions by broker: made when first asked for, kept up from then on."""
        if self._index is None:
            self._index = PartitionIndex(self)
        return self._index

    def __iter__(self) -> Iterator[TopicImage]:
        return iter(self._by_id.values())

    def __len__(self) -> int:
        return len(self._by_id)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TopicsImage) and self._by_id == other._by_id

    __hash__ = None  # type: ignore[assignment]

    def add(self, topic: TopicImage) -> None:
        """Add a topic without partitions, that this image alone holds."""
        self.remove(topic.topic_id)
        self._by_id[topic.topic_id] = self._by_name[topic.name] = topic
        self._owned.add(topic.topic_id)
        if _collides(topic.name):
            self._lookalikes.setdefault(_plain(topic.name), set()).add(topic.name)

    def remove(self, topic_id: bytes) -> TopicImage | None:
        topic = self._by_id.pop(topic_id, None)
        if topic is None:
            return None
        self._forget_partitions(topic)
        self._owned.discard(topic_id)
        if self._by_name.get(topic.name) is topic:
            del self._by_name[topic.name]
        alike = self._lookalikes.get(_plain(topic.name))
        if alike is not None:
            alike.discard(topic.name)
            if not alike:
                del self._lookalikes[_plain(topic.name)]
        return topic

    def put_partition(self, topic: TopicImage, number: int, partition: PartitionRegistration) -> None:
        """Set one partition of a topic of this image."""
        if topic.topic_id not in self._owned:
            topic = self._own(topic)
        if self._index is not None:
            before = topic.partitions.get(number)
            self._index.update((topic.topic_id, number), before, partition)
        topic.partitions[number] = partition

    def _own(self, shared: TopicImage) -> TopicImage:
        """A copy that this image may change, in the place of a topic that others hold, too."""
        topic = TopicImage(shared.name, shared.topic_id, dict(shared.partitions))
        self._by_id[topic.topic_id] = topic
        if self._by_name.get(topic.name) is shared:
            self._by_name[topic.name] = topic
        self._owned.add(topic.topic_id)
        return topic

    def _forget_partitions(self, topic: TopicImage) -> None:
        if self._index is None:
            return
        for number, partition in topic.partitions.items():
            self._index.update((topic.topic_id, number), partition, None)

    def copy(self) -> "TopicsImage":
        twin = TopicsImage()
        twin._by_id = dict(self._by_id)
        twin._by_name = dict(self._by_name)
        twin._lookalikes = {plain: set(names) for plain, names in self._lookalikes.items()}
        self._owned = set()
        return twin


class MetadataImage:
    """What the cluster knows after the record at `offset`, written in leader epoch `epoch`."""

    __slots__ = (
        "acls",
        "brokers",
        "configs",
        "controllers",
        "epoch",
        "features",
        "next_producer_id",
        "offset",
        "quotas",
        "scram",
        "tokens",
        "topics",
    )

    def __init__(self) -> None:
        self.offset = -1
        self.epoch = -1
        self.topics = TopicsImage()
        self.brokers: dict[int, BrokerRegistration] = {}
        self.controllers: dict[int, ControllerRegistration] = {}
        self.features: dict[str, int] = {}
        self.configs: dict[ConfigResource, dict[str, str]] = {}
        self.next_producer_id = 0
        self.quotas: dict[QuotaEntity, dict[str, float]] = {}
        self.acls: dict[bytes, AclEntry] = {}
        self.scram: dict[tuple[str, int], ScramCredential] = {}
        self.tokens: dict[str, DelegationToken] = {}

    @property
    def metadata_level(self) -> int:
        """The level of `metadata.version` that decides how records are written."""
        return self.features.get(METADATA_VERSION, MIN_METADATA_LEVEL)

    @property
    def has_eligible_leaders(self) -> bool:
        """Whether replicas that left the in-sync set below its minimum may lead (KIP-966)."""
        return self.features.get(ELIGIBLE_LEADER_REPLICAS_VERSION, 0) > 0

    def partition(self, topic_id: bytes, index: int) -> PartitionRegistration | None:
        topic = self.topics.by_id(topic_id)
        return topic.partitions.get(index) if topic is not None else None

    def config(self, resource_type: int, name: str) -> dict[str, str]:
        """What was set for one resource; not to be changed."""
        return self.configs.get((resource_type, name), {})

    def apply(self, record: Message, delta: MetadataDelta) -> None:
        """Take in a record, and note in `delta` what it changed."""
        applier = REPLAY_FUNCTIONS.get(type(record))
        if applier is not None:  # no-ops and transaction markers say nothing about the cluster
            applier(self, record, delta)

    def records(self) -> Iterator[Message]:
        """The records that rebuild this image from nothing: its snapshot."""
        return snapshot_records(self)

    def copy(self) -> "MetadataImage":
        twin = MetadataImage()
        twin.offset = self.offset
        twin.epoch = self.epoch
        twin.topics = self.topics.copy()
        twin.brokers = dict(self.brokers)
        twin.controllers = dict(self.controllers)
        twin.features = dict(self.features)
        # Replaced rather than changed by replay, so the inner maps can be shared.
        twin.configs = dict(self.configs)
        twin.quotas = dict(self.quotas)
        twin.next_producer_id = self.next_producer_id
        twin.acls = dict(self.acls)
        twin.scram = dict(self.scram)
        twin.tokens = dict(self.tokens)
        return twin

    def __eq__(self, other: object) -> bool:
        """Equal in what they know, wherever they stand in the log."""
        if not isinstance(other, MetadataImage):
            return NotImplemented
        known = [name for name in self.__slots__ if name not in ("offset", "epoch")]
        return all(getattr(self, name) == getattr(other, name) for name in known)

    __hash__ = None  # type: ignore[assignment]


def _collides(name: str) -> bool:
    return "." in name or "_" in name


def _plain(name: str) -> str:
    return name.replace(".", "_")
