"""All that one partition of `__transaction_state` keeps: transactional ids, and what they do."""

from collections.abc import Callable

from barnabas.coordinator.ports import ResolvedSettings
from barnabas.coordinator.records import CoordinatorRecord
from barnabas.coordinator.shard import CoordinatorShard
from barnabas.coordinator.timers import ShardTimers
from barnabas.coordinator.transactions import markers, timeouts
from barnabas.coordinator.transactions.timeouts import IdDeadlines
from barnabas.coordinator.transactions.metadata import (
    TopicPartition,
    TransactionMetadata,
    TransactionState,
)
from barnabas.coordinator.transactions.ports import TransactionParticipants
from barnabas.coordinator.transactions.producer_ids import ProducerIdManager
from barnabas.coordinator.transactions.records import from_record, to_record
from barnabas.metadata.delta import MetadataDelta
from barnabas.metadata.features import TRANSACTION_VERSION
from barnabas.metadata.image import MetadataImage
from barnabas.wire.messages.transaction_records import TransactionLogValue


class TransactionCoordinatorState:
    """The state machine of one shard. What each request decides is in the modules beside."""

    def __init__(
        self,
        shard: "CoordinatorShard[TransactionCoordinatorState]",
        settings: ResolvedSettings,
        image: Callable[[], MetadataImage],
        participants: TransactionParticipants,
        producer_ids: ProducerIdManager,
    ) -> None:
        self.shard = shard
        self.settings = settings
        self._image = image
        self.participants = participants
        self.producer_ids = producer_ids
        self.by_id: dict[str, TransactionMetadata] = {}
        self.endings: dict[str, markers.PendingMarkers] = {}
        """Transactions whose partitions are being told their outcome."""
        self.ongoing = IdDeadlines()
        """By when an ongoing transaction has timed out."""
        self.idle = IdDeadlines()
        """By when an id that is not used expires."""
        self.expiration_ms: int = settings.broker("transactional.id.expiration.ms")
        self._decided: tuple[TransactionLogValue, TransactionMetadata] | None = None

    @property
    def timers(self) -> ShardTimers:
        return self.shard.timers

    @property
    def image(self) -> MetadataImage:
        """What the cluster knows now: a partition that is not in it is not waited for."""
        return self._image()

    @property
    def transaction_version(self) -> int:
        """The level of `transaction.version` that the cluster has finalized."""
        return self.image.features.get(TRANSACTION_VERSION, 0)

    def now_ms(self) -> int:
        return self.shard.now_ms()

    def record(self, metadata: TransactionMetadata) -> CoordinatorRecord:
        """The record that makes `metadata` what is known of its id, once it is in the log."""
        record = to_record(metadata, self.transaction_version)
        self._decided = record.value, metadata
        return record

    def replay(self, record: CoordinatorRecord, producer_id: int) -> None:
        transactional_id = record.key.transactional_id
        if record.value is None:
            self.by_id.pop(transactional_id, None)
            return
        if self._decided is not None and self._decided[0] is record.value:
            # What was decided here says more than its record: the last epoch is not in the log.
            metadata = self._decided[1]
        else:
            metadata = from_record(transactional_id, record.value)
        self._decided = None
        self.by_id[transactional_id] = metadata
        self.idle.watch(transactional_id, metadata.updated_ms + self.expiration_ms)
        if metadata.state is TransactionState.ONGOING:
            self.ongoing.watch(transactional_id, metadata.deadline_ms)

    def replay_end(self, producer_id: int, committed: bool) -> None:
        """Nothing here is written in a transaction."""

    def loaded(self) -> None:
        markers.resume(self)
        timeouts.start(self)

    def unloaded(self) -> None:
        self.endings.clear()

    def follow(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """Metadata is asked for when it is needed; who waits for a leader may find one now."""
        if self.endings and delta.partitions_changed:
            markers.tell_again(self, _named(delta, image))


def _named(delta: MetadataDelta, image: MetadataImage) -> set[TopicPartition]:
    """The partitions that changed, as transactions know them."""
    return {
        (topic.name, index)
        for topic_id, index in delta.partitions_changed
        if (topic := image.topics.by_id(topic_id)) is not None
    }
