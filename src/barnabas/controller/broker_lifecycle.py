"""What follows from a broker coming, going or losing a disk: records for it and its partitions."""

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

_YES: Final = 1
_NO: Final = -1


def require_broker_epoch(
    broker_id: int, broker_epoch: int, image: MetadataImage
) -> BrokerRegistration:
    """STALE_BROKER_EPOCH unless the request is from the process that is registered."""
    broker = image.brokers.get(broker_id)
    if broker is None or broker.epoch != broker_epoch:
        known = "not registered" if broker is None else f"registered with epoch {broker.epoch}"
        raise KafkaError(
            ErrorCode.STALE_BROKER_EPOCH,
            f"Broker {broker_id} sent the epoch {broker_epoch}, but is {known}.",
        )
    return broker


def fence(
    broker: BrokerRegistration, image: MetadataImage, context: ControllerContext
) -> list[Message]:
    """It leads nothing any more and is in no in-sync set."""
    return [*_leave(broker, image, context), _change(broker, fenced=_YES)]


def unfence(
    broker: BrokerRegistration, image: MetadataImage, context: ControllerContext
) -> list[Message]:
    """It may lead again, and at once leads what had no leader and it can lead."""
    leaderless = image.topics.index.leaderless
    return [
        _change(broker, fenced=_NO),
        *leader_and_isr_updates(image, context, leaderless, joining=broker.broker_id),
    ]


def begin_controlled_shutdown(
    broker: BrokerRegistration, image: MetadataImage, context: ControllerContext
) -> list[Message]:
    """It hands over what it leads, still serving those who have not heard of it."""
    return [_change(broker, in_controlled_shutdown=_YES), *_leave(broker, image, context)]


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
    """Some of its log directories failed: what is in them is no longer served by it."""
    offline = [directory for directory in broker.log_dirs if directory in lost]
    if not offline:
        return []
    broker_id = broker.broker_id
    touched = [
        (topic.topic_id, number)
        for topic, number, partition in existing_partitions(
            image, image.topics.index.in_sync_by(broker_id)
        )
        if partition.directory_of(broker_id) in offline
    ]
    online = [directory for directory in broker.log_dirs if directory not in lost]
    return [
        *leader_and_isr_updates(image, context, touched, leaving=broker_id),
        _change(broker, log_dirs=online),
    ]


def cordon_directories(broker: BrokerRegistration, cordoned: list[bytes]) -> list[Message]:
    """Some of its log directories take no new replicas."""
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
