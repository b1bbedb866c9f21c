"""The metadata image: the state of the cluster after all metadata records up to an offset.

An image is live: records are applied to it in place, so that a change costs what the record
changes and not the size of the cluster. Therefore a coroutine must not use an image, or a
`TopicImage` of it, across an `await`: it gets the current one again. The values in an image
(partitions, brokers, ACLs, ...) are frozen and may be kept. What needs an image that does not
change takes a `copy`, which shares the values; a topic is copied at its first change.

Applying a record never fails: a record about something that the image lacks is ignored.
"""

from collections.abc import Iterable, Iterator

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
from barnabas.wire.messages.metadata_records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
)
from barnabas.wire.schema import Message


class TopicsImage:
    """The topics of an image, by id and by name."""

    __slots__ = ("_by_id", "_by_name", "_colliding_names", "_index", "_owned")

    def __init__(self) -> None:
        self._by_id: dict[bytes, TopicImage] = {}
        self._by_name: dict[str, TopicImage] = {}
        # Names that differ only in "." and "_" collide, as they have the same metric name.
        self._colliding_names: dict[str, set[str]] = {}
        # Topics whose partitions this image does not share with a copy.
        self._owned: set[bytes] = set()
        self._index: PartitionIndex | None = None

    def by_name(self, name: str) -> TopicImage | None:
        return self._by_name.get(name)

    def by_id(self, topic_id: bytes) -> TopicImage | None:
        return self._by_id.get(topic_id)

    def find_colliding(self, name: str) -> str | None:
        """Returns a topic whose name differs from `name` at most in "." and "_"."""
        return next(iter(self._colliding_names.get(_metric_name(name), ())), None)

    @property
    def index(self) -> PartitionIndex:
        """Partitions by broker: built at the first use, and updated from then on."""
        if self._index is None:
            self._index = PartitionIndex(self)
        return self._index

    def __iter__(self) -> Iterator[TopicImage]:
        return iter(self._by_id.values())

    def __len__(self) -> int:
        return len(self._by_id)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TopicsImage) and self._by_id == other._by_id

    def add(self, topic: TopicImage) -> None:
        """Adds a topic without partitions that no other image shares."""
        self.remove(topic.topic_id)
        self._by_id[topic.topic_id] = self._by_name[topic.name] = topic
        self._owned.add(topic.topic_id)
        if _may_collide(topic.name):
            self._colliding_names.setdefault(_metric_name(topic.name), set()).add(topic.name)

    def remove(self, topic_id: bytes) -> TopicImage | None:
        topic = self._by_id.pop(topic_id, None)
        if topic is None:
            return None
        self._unindex_partitions(topic)
        self._owned.discard(topic_id)
        if self._by_name.get(topic.name) is topic:
            del self._by_name[topic.name]
        colliding = self._colliding_names.get(_metric_name(topic.name))
        if colliding is not None:
            colliding.discard(topic.name)
            if not colliding:
                del self._colliding_names[_metric_name(topic.name)]
        return topic

    def put_partition(
        self, topic: TopicImage, number: int, partition: PartitionRegistration
    ) -> None:
        """Sets one partition of a topic of this image."""
        if topic.topic_id not in self._owned:
            topic = self._copy_shared(topic)
        if self._index is not None:
            before = topic.partitions.get(number)
            self._index.update((topic.topic_id, number), before, partition)
        topic.partitions[number] = partition

    def _copy_shared(self, shared: TopicImage) -> TopicImage:
        """Replaces a topic that a copy shares by one that this image may change."""
        topic = TopicImage(shared.name, shared.topic_id, dict(shared.partitions))
        self._by_id[topic.topic_id] = topic
        if self._by_name.get(topic.name) is shared:
            self._by_name[topic.name] = topic
        self._owned.add(topic.topic_id)
        return topic

    def _unindex_partitions(self, topic: TopicImage) -> None:
        if self._index is None:
            return
        for number, partition in topic.partitions.items():
            self._index.update((topic.topic_id, number), partition, None)

    def copy(self) -> "TopicsImage":
        copied = TopicsImage()
        copied._by_id = dict(self._by_id)
        copied._by_name = dict(self._by_name)
        copied._colliding_names = {
            metric_name: set(names) for metric_name, names in self._colliding_names.items()
        }
        self._owned = set()
        return copied


class MetadataImage:
    """The state of the cluster after the record at `offset`, written in leader epoch `epoch`.

    It is live; see the module's docstring before keeping a reference to it.
    """

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
        """The level of `metadata.version`, which decides how records are written."""
        return self.features.get(METADATA_VERSION, MIN_METADATA_LEVEL)

    @property
    def has_eligible_leaders(self) -> bool:
        """Whether eligible leader replicas are enabled (KIP-966)."""
        return self.features.get(ELIGIBLE_LEADER_REPLICAS_VERSION, 0) > 0

    def partition(self, topic_id: bytes, index: int) -> PartitionRegistration | None:
        topic = self.topics.by_id(topic_id)
        return topic.partitions.get(index) if topic is not None else None

    def config(self, resource_type: int, name: str) -> dict[str, str]:
        """Returns the configs of one resource; the caller must not change them."""
        return self.configs.get((resource_type, name), {})

    def apply(self, record: Message, delta: MetadataDelta) -> None:
        """Applies a record, and adds to `delta` what it changed."""
        replay = REPLAY_FUNCTIONS.get(type(record))
        if replay is not None:  # no-ops and transaction markers change nothing
            replay(self, record, delta)

    def records(self) -> Iterator[Message]:
        """Yields the records of a snapshot: those that build this image from an empty one."""
        return snapshot_records(self)

    def copy(self) -> "MetadataImage":
        copied = MetadataImage()
        copied.offset = self.offset
        copied.epoch = self.epoch
        copied.topics = self.topics.copy()
        copied.brokers = dict(self.brokers)
        copied.controllers = dict(self.controllers)
        copied.features = dict(self.features)
        # Replay replaces the inner maps instead of changing them, so they can be shared.
        copied.configs = dict(self.configs)
        copied.quotas = dict(self.quotas)
        copied.next_producer_id = self.next_producer_id
        copied.acls = dict(self.acls)
        copied.scram = dict(self.scram)
        copied.tokens = dict(self.tokens)
        return copied

    def __eq__(self, other: object) -> bool:
        """Whether both have the same state, at whatever offsets."""
        if not isinstance(other, MetadataImage):
            return NotImplemented
        names = [name for name in self.__slots__ if name not in ("offset", "epoch")]
        return all(getattr(self, name) == getattr(other, name) for name in names)


def _may_collide(name: str) -> bool:
    return "." in name or "_" in name


def _metric_name(name: str) -> str:
    return name.replace(".", "_")


class MetadataLoader:
    """Keeps `image` at the last loaded record that belongs to no open transaction.

    A change that is too large for one batch is written between a begin and an end marker
    (KIP-868). No reader may see a part of it, and an abort marker cancels it.
    """

    __slots__ = ("_open_transaction", "image")

    def __init__(self, image: MetadataImage) -> None:
        self.image = image
        self._open_transaction: list[Message] | None = None

    @property
    def in_transaction(self) -> bool:
        return self._open_transaction is not None

    def load(
        self, records: Iterable[Message], last_offset: int, epoch: int, delta: MetadataDelta
    ) -> None:
        """Applies one committed batch, whose last record is at `last_offset`."""
        for record in records:
            if isinstance(record, BeginTransactionRecord):
                self._open_transaction = []
            elif isinstance(record, EndTransactionRecord):
                for transaction_record in self._open_transaction or ():
                    self.image.apply(transaction_record, delta)
                self._open_transaction = None
            elif isinstance(record, AbortTransactionRecord):
                self._open_transaction = None
            elif self._open_transaction is not None:
                self._open_transaction.append(record)
            else:
                self.image.apply(record, delta)
        if self._open_transaction is None:
            self.image.offset = last_offset
            self.image.epoch = epoch
