"""The records for a broker that joins, leaves or loses a log directory, and its partitions."""

from collections.abc import Collection, Iterator
from typing import Final

from barnabas.controller.context import ControllerContext
from barnabas.controller.partition_change import existing_partitions, leader_and_isr_updates
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.states import BrokerRegistration
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.metadata_records import (
    BrokerRegistrationChangeRecord,
    UnregisterBrokerRecord,
)
from barnabas.wire.schema import Message

_SET: Final = 1
_UNSET: Final = -1


def require_broker_epoch(
    broker_id: int, broker_epoch: int, image: MetadataImage
) -> BrokerRegistration:
    """Returns the broker. Raises STALE_BROKER_EPOCH unless its registered process sent this."""
    broker = image.brokers.get(broker_id)
    if broker is None or broker.epoch != broker_epoch:
        current = "not registered" if broker is None else f"registered with epoch {broker.epoch}"
        raise KafkaError(
            ErrorCode.STALE_BROKER_EPOCH,
            f"Broker {broker_id} sent the epoch {broker_epoch}, but is {current}.",
        )
    return broker


def fence(
    broker: BrokerRegistration, image: MetadataImage, context: ControllerContext
) -> list[Message]:
    """Returns the records to fence a broker: it leads nothing and is in no ISR."""
    return [*_leave(broker, image, context), _change(broker, fenced=_SET)]


def unfence(
    broker: BrokerRegistration, image: MetadataImage, context: ControllerContext
) -> list[Message]:
    """Returns the records to unfence a broker, which at once leads leaderless partitions."""
    leaderless = image.topics.index.leaderless
    return [
        _change(broker, fenced=_UNSET),
        *leader_and_isr_updates(image, context, leaderless, joining=broker.broker_id),
    ]


def begin_controlled_shutdown(
    broker: BrokerRegistration, image: MetadataImage, context: ControllerContext
) -> list[Message]:
    """Returns the records that move its leaderships; it serves clients until they know."""
    return [_change(broker, in_controlled_shutdown=_SET), *_leave(broker, image, context)]


def unregister(
    broker: BrokerRegistration, image: MetadataImage, context: ControllerContext
) -> list[Message]:
    return [
        *_leave(broker, image, context),
        UnregisterBrokerRecord(broker_id=broker.broker_id, broker_epoch=broker.epoch),
    ]


def take_directories_offline(
    broker: BrokerRegistration,
    lost: Collection[bytes],
    image: MetadataImage,
    context: ControllerContext,
) -> list[Message]:
    """Returns the records for log directories that failed, and for the replicas in them."""
    offline = [directory for directory in broker.log_dirs if directory in lost]
    if not offline:
        return []
    broker_id = broker.broker_id
    partitions = [
        (topic.topic_id, number)
        for topic, number, partition in existing_partitions(
            image, image.topics.index.in_sync_by(broker_id)
        )
        if partition.directory_of(broker_id) in offline
    ]
    online = [directory for directory in broker.log_dirs if directory not in lost]
    return [
        *leader_and_isr_updates(image, context, partitions, leaving=broker_id),
        _change(broker, log_dirs=online),
    ]


def cordon_directories(broker: BrokerRegistration, cordoned: list[bytes]) -> list[Message]:
    """Returns the record for the log directories that take no new replicas."""
    if broker.cordoned_log_dirs == tuple(cordoned):
        return []
    return [_change(broker, cordoned_log_dirs=cordoned)]


def _leave(
    broker: BrokerRegistration, image: MetadataImage, context: ControllerContext
) -> Iterator[Message]:
    in_sync = image.topics.index.in_sync_by(broker.broker_id)
    return leader_and_isr_updates(image, context, in_sync, leaving=broker.broker_id)


def _change(
    broker: BrokerRegistration,
    *,
    fenced: int = 0,
    in_controlled_shutdown: int = 0,
    log_dirs: list[bytes] | None = None,
    cordoned_log_dirs: list[bytes] | None = None,
) -> BrokerRegistrationChangeRecord:
    return BrokerRegistrationChangeRecord(
        broker_id=broker.broker_id,
        broker_epoch=broker.epoch,
        fenced=fenced,
        in_controlled_shutdown=in_controlled_shutdown,
        log_dirs=log_dirs or [],
        cordoned_log_dirs=cordoned_log_dirs,
    )
