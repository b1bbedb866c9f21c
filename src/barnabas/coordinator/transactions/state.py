"""The state of one partition of `__transaction_state`: transactional ids and their transactions."""

from collections.abc import Callable, Sequence

from barnabas.coordinator.decision import Effect
from barnabas.coordinator.ports import ResolvedSettings
from barnabas.coordinator.records import CoordinatorRecord
from barnabas.coordinator.shard import CoordinatorShard
from barnabas.coordinator.transactions.markers import (
    MarkerSender,
    SendMarkers,
    TransactionParticipants,
    resume_markers,
)
from barnabas.coordinator.transactions.metadata import (
    TopicPartition,
    TransactionContext,
    TransactionMetadata,
    TransactionState,
)
from barnabas.coordinator.transactions.producer_ids import ProducerIdManager
from barnabas.coordinator.transactions.records import TransactionRecord, from_record
from barnabas.coordinator.transactions.timeouts import IdDeadlines, TransactionTimeouts
from barnabas.metadata.delta import MetadataDelta
from barnabas.metadata.image import MetadataImage


class TransactionCoordinatorState:
    """The state machine of one shard. The modules beside this one decide on it."""

    def __init__(
        self,
        shard: "CoordinatorShard[TransactionCoordinatorState]",
        settings: ResolvedSettings,
        image: Callable[[], MetadataImage],
        participants: TransactionParticipants,
        producer_ids: ProducerIdManager,
    ) -> None:
        self.by_id: dict[str, TransactionMetadata] = {}
        self.ongoing = IdDeadlines()
        """When an ongoing transaction times out."""
        self.idle = IdDeadlines()
        """When an unused id expires."""
        self.expiration_ms: int = settings.broker("transactional.id.expiration.ms")
        self.markers = MarkerSender(shard, participants, image)
        self._timeouts = TransactionTimeouts(shard, settings, producer_ids)

    def replay(self, record: CoordinatorRecord, producer_id: int) -> None:
        transactional_id = record.key.transactional_id
        if record.value is None:
            self.by_id.pop(transactional_id, None)
            return
        if isinstance(record, TransactionRecord):
            metadata = record.metadata
        else:
            metadata = from_record(transactional_id, record.value)
        self.by_id[transactional_id] = metadata
        self.idle.watch(transactional_id, metadata.updated_ms + self.expiration_ms)
        if metadata.state is TransactionState.ONGOING:
            self.ongoing.watch(transactional_id, metadata.deadline_ms)

    def replay_end(self, producer_id: int, committed: bool) -> None:
        """No record of this topic is part of a transaction."""

    def on_loaded(self, context: TransactionContext) -> Sequence[Effect]:
        self._timeouts.start()
        return resume_markers(self)

    def on_unloaded(self) -> None:
        self.markers.close()

    def on_metadata_update(
        self, delta: MetadataDelta, image: MetadataImage, context: TransactionContext
    ) -> Sequence[Effect]:
        """Markers that wait for the leader of a partition may have one now."""
        if self.markers.pending and delta.partitions_changed:
            self.markers.retry_now(_named(delta, image))
        return ()

    def perform(self, effect: Effect, context: TransactionContext) -> None:
        match effect:
            case SendMarkers():
                self.markers.send(effect.transactional_id)


def _named(delta: MetadataDelta, image: MetadataImage) -> set[TopicPartition]:
    """Returns the partitions that changed, by topic name."""
    return {
        (topic.name, index)
        for topic_id, index in delta.partitions_changed
        if (topic := image.topics.by_id(topic_id)) is not None
    }
