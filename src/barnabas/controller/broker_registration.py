"""BrokerRegistration (key 62): a broker process makes itself known and gets its epoch.

v2 log directories; v3 the epoch before, by which a broker shows that it had stopped cleanly.
"""

from barnabas.controller.context import ControllerContext, ControllerDecision
from barnabas.controller.heartbeat_tracker import BrokerContact
from barnabas.controller.partition_change import existing_partitions, leader_and_isr_updates
from barnabas.decision import Decision
from barnabas.metadata.features import (
    DIRECTORY_ASSIGNMENT_FROM,
    ELIGIBLE_LEADERS_FROM,
    METADATA_VERSION,
)
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.states import BrokerRegistration, DirectoryId, FeatureLevelRange
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.broker_registration import (
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
)
from barnabas.wire.messages.metadata_records import (
    BrokerEndpoint,
    BrokerFeature,
    RegisterBrokerRecord,
)
from barnabas.wire.schema import Message
from barnabas.wire.uuid import to_text


def decide(
    request: BrokerRegistrationRequest, image: MetadataImage, context: ControllerContext
) -> ControllerDecision:
    if request.cluster_id != context.cluster_id:
        raise KafkaError(
            ErrorCode.INCONSISTENT_CLUSTER_ID,
            f"Broker {request.broker_id} is formatted for cluster {request.cluster_id}, "
            f"this is cluster {context.cluster_id}.",
        )
    existing = image.brokers.get(request.broker_id)
    restarted = existing is None or existing.incarnation_id != request.incarnation_id
    if (
        existing is not None
        and restarted
        and not existing.in_controlled_shutdown
        and context.heartbeats.has_valid_session(existing, context.now_ms)
        and not _has_its_place(request, existing)
    ):
        raise KafkaError(
            ErrorCode.DUPLICATE_BROKER_REGISTRATION,
            f"Another process is running as broker {request.broker_id}.",
        )
    _require_directories(request, image)
    _require_features(request, image)
    records: list[Message] = []
    if restarted:
        records += _cleanup(existing, request, image, context)
    record = _register_record(request, image)
    if existing is None or restarted:
        record.broker_epoch = context.next_offset
    else:
        record.broker_epoch = existing.epoch
        record.fenced = existing.fenced
        record.in_controlled_shutdown = existing.in_controlled_shutdown
    records.append(record)
    return Decision(
        records,
        BrokerRegistrationResponse(broker_epoch=record.broker_epoch),
        [BrokerContact(request.broker_id, record.broker_epoch, context.now_ms, metadata_offset=-1)],
    )


def _has_its_place(request: BrokerRegistrationRequest, existing: BrokerRegistration) -> bool:
    """Whether it has the directories and the addresses of the process that is registered.

    Nobody gets either while their owner lives, so that one has died. (Kafka lets its successor
    wait until the session has ended.)
    """
    addresses = {(each.name, each.host, each.port) for each in request.listeners}
    return (
        bool(request.log_dirs)
        and set(request.log_dirs) == set(existing.log_dirs)
        and addresses == {(each.name, each.host, each.port) for each in existing.endpoints}
    )


def _cleanup(
    existing: BrokerRegistration | None,
    request: BrokerRegistrationRequest,
    image: MetadataImage,
    context: ControllerContext,
) -> list[Message]:
    """The process before may have died: it leads nothing now, and unless it had stopped cleanly
    its log may have lost what its replicas were trusted to have (KIP-966).

    A partition with no other replica stays as it is after a clean stop, so that a broker alone
    starts in a time that does not grow with its partitions: nobody else could have led it, and
    while the broker is fenced no client is sent to it. (Kafka takes the leader away and gives it
    back, two records a partition.)
    """
    broker_id, index = request.broker_id, image.topics.index
    if image.metadata_level < ELIGIBLE_LEADERS_FROM:
        return list(
            leader_and_isr_updates(image, context, index.in_sync_by(broker_id), leaving=broker_id)
        )
    if existing is not None and request.previous_broker_epoch == existing.epoch:
        shared = [
            (topic.topic_id, number)
            for topic, number, partition in existing_partitions(image, index.in_sync_by(broker_id))
            if len(partition.replicas) > 1
        ]
        return list(leader_and_isr_updates(image, context, shared, leaving=broker_id))
    trusted = (*index.in_sync_by(broker_id), *index.eligible_by(broker_id))
    return list(leader_and_isr_updates(image, context, trusted, unclean_shutdown=broker_id))


def _register_record(
    request: BrokerRegistrationRequest, image: MetadataImage
) -> RegisterBrokerRecord:
    with_directories = image.metadata_level >= DIRECTORY_ASSIGNMENT_FROM
    return RegisterBrokerRecord(
        broker_id=request.broker_id,
        incarnation_id=request.incarnation_id,
        end_points=[
            BrokerEndpoint(
                name=listener.name,
                host=listener.host,
                port=listener.port,
                security_protocol=listener.security_protocol,
            )
            for listener in request.listeners
        ],
        features=[
            BrokerFeature(
                name=feature.name,
                min_supported_version=feature.min_supported_version,
                max_supported_version=feature.max_supported_version,
            )
            for feature in request.features
        ],
        rack=request.rack,
        log_dirs=list(request.log_dirs) if with_directories else [],
    )


def _require_directories(request: BrokerRegistrationRequest, image: MetadataImage) -> None:
    if image.metadata_level < DIRECTORY_ASSIGNMENT_FROM:
        return
    if not request.log_dirs:
        raise _invalid(request, "it names no log directories")
    if any(DirectoryId.is_reserved(directory) for directory in request.log_dirs):
        raise _invalid(request, "a log directory has a reserved id")
    if len(set(request.log_dirs)) < len(request.log_dirs):
        raise _invalid(request, "two of its log directories have the same id")
    for other in image.brokers.values():
        shared = set(other.log_dirs).intersection(request.log_dirs)
        if shared and other.broker_id != request.broker_id:
            raise _invalid(
                request,
                f"broker {other.broker_id} has the log directory {to_text(shared.pop())} too",
            )


def _require_features(request: BrokerRegistrationRequest, image: MetadataImage) -> None:
    supported = {
        feature.name: FeatureLevelRange(
            feature.min_supported_version, feature.max_supported_version
        )
        for feature in request.features
    }
    if METADATA_VERSION not in supported:
        raise _invalid(request, f"it does not say which {METADATA_VERSION} it supports")
    for name, level in image.features.items():
        levels = supported.get(name, FeatureLevelRange(0, 0))
        if level not in levels:
            raise KafkaError(
                ErrorCode.UNSUPPORTED_VERSION,
                f"Broker {request.broker_id} supports {name} from {levels.min} to {levels.max}, "
                f"but the cluster has finalised {level}.",
            )


def _invalid(request: BrokerRegistrationRequest, reason: str) -> KafkaError:
    return KafkaError(
        ErrorCode.INVALID_REGISTRATION, f"Broker {request.broker_id} cannot register: {reason}."
    )
