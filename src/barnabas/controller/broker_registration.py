"""Registrations: BrokerRegistration (key 62), UnregisterBroker (64), ControllerRegistration (70).

A broker process gets its broker epoch by registering. v2 of BrokerRegistration adds log
directories; v3 the previous broker epoch, which proves a clean shutdown.
"""

from barnabas.controller.broker_lifecycle import unregister
from barnabas.controller.context import ControllerContext, ControllerDecision
from barnabas.controller.heartbeat_tracker import BrokerContact
from barnabas.controller.partition_change import existing_partitions, leader_and_isr_updates
from barnabas.decision import Decision
from barnabas.metadata.features import (
    CONTROLLER_REGISTRATION_FROM,
    DIRECTORY_ASSIGNMENT_FROM,
    ELIGIBLE_LEADERS_FROM,
    METADATA_VERSION,
)
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.replay import read_endpoints, read_features
from barnabas.metadata.snapshot import broker_record, controller_record
from barnabas.metadata.states import (
    BrokerRegistration,
    ControllerRegistration,
    DirectoryId,
    FeatureLevelRange,
)
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.registrations import (
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
    ControllerRegistrationRequest,
    ControllerRegistrationResponse,
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
)
from barnabas.wire.schema import Message
from barnabas.wire.uuid import to_text


def decide_broker_registration(
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
        and not has_same_resources(request, existing)
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
    broker = _registration(request, None if restarted else existing, image, context)
    records.append(broker_record(broker))
    contact = BrokerContact(broker.broker_id, broker.epoch, context.now_ms, metadata_offset=-1)
    return Decision(records, BrokerRegistrationResponse(broker_epoch=broker.epoch), [contact])


def has_same_resources(request: BrokerRegistrationRequest, existing: BrokerRegistration) -> bool:
    """Returns whether it has the directories and the listeners of the registered process.

    No process gets either while their owner runs, so one of the two is dead: mostly the registered
    one. (Kafka makes the new process wait until the session ends.)
    """
    listeners = {(item.name, item.host, item.port) for item in request.listeners}
    return (
        bool(request.log_dirs)
        and set(request.log_dirs) == set(existing.log_dirs)
        and listeners == {(item.name, item.host, item.port) for item in existing.endpoints}
    )


def _cleanup(
    existing: BrokerRegistration | None,
    request: BrokerRegistrationRequest,
    image: MetadataImage,
    context: ControllerContext,
) -> list[Message]:
    """Returns the partition changes for a new process of a broker.

    The previous process leads nothing any more. Unless it shut down cleanly, its log may lack
    records that its replicas are trusted to have (KIP-966).

    After a clean shutdown a partition without other replicas stays unchanged, so that the start
    of a single broker does not take longer with more partitions: no other broker could have led
    it, and no client is sent to a fenced broker. (Kafka removes the leader and restores it, with
    two records for every partition.)
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


def _registration(
    request: BrokerRegistrationRequest,
    existing: BrokerRegistration | None,
    image: MetadataImage,
    context: ControllerContext,
) -> BrokerRegistration:
    """Returns the new registration; `existing` is that of the same process, which it replaces."""
    with_directories = image.metadata_level >= DIRECTORY_ASSIGNMENT_FROM
    return BrokerRegistration(
        request.broker_id,
        existing.epoch if existing is not None else context.next_offset,
        request.incarnation_id,
        read_endpoints(request.listeners),
        read_features(request.features),
        request.rack,
        fenced=existing.fenced if existing is not None else True,
        in_controlled_shutdown=existing is not None and existing.in_controlled_shutdown,
        log_dirs=tuple(request.log_dirs) if with_directories else (),
    )


def _require_directories(request: BrokerRegistrationRequest, image: MetadataImage) -> None:
    if image.metadata_level < DIRECTORY_ASSIGNMENT_FROM:
        return
    if not request.log_dirs:
        raise _invalid(request, "it has no log directories")
    if any(DirectoryId.is_reserved(directory) for directory in request.log_dirs):
        raise _invalid(request, "a log directory has a reserved id")
    if len(set(request.log_dirs)) < len(request.log_dirs):
        raise _invalid(request, "two of its log directories have the same id")
    for other in image.brokers.values():
        shared = set(other.log_dirs).intersection(request.log_dirs)
        if shared and other.broker_id != request.broker_id:
            raise _invalid(
                request,
                f"broker {other.broker_id} also has the log directory {to_text(shared.pop())}",
            )


def _require_features(request: BrokerRegistrationRequest, image: MetadataImage) -> None:
    supported = read_features(request.features)
    if METADATA_VERSION not in supported:
        raise _invalid(request, f"it does not list the {METADATA_VERSION} levels that it supports")
    for name, level in image.features.items():
        levels = supported.get(name, FeatureLevelRange(0, 0))
        if level not in levels:
            raise KafkaError(
                ErrorCode.UNSUPPORTED_VERSION,
                f"Broker {request.broker_id} supports {name} from {levels.min} to {levels.max}, "
                f"but the cluster has finalized {level}.",
            )


def _invalid(request: BrokerRegistrationRequest, reason: str) -> KafkaError:
    return KafkaError(
        ErrorCode.INVALID_REGISTRATION, f"Broker {request.broker_id} cannot register: {reason}."
    )


def decide_unregister_broker(
    request: UnregisterBrokerRequest, image: MetadataImage, context: ControllerContext
) -> ControllerDecision:
    broker = image.brokers.get(request.broker_id)
    if broker is None:
        raise KafkaError(
            ErrorCode.BROKER_ID_NOT_REGISTERED,
            f"Broker ID {request.broker_id} is not currently registered",
        )
    records = unregister(broker, image, context)
    return Decision(records, UnregisterBrokerResponse(error_message=None))


def decide_controller_registration(
    request: ControllerRegistrationRequest, image: MetadataImage, context: ControllerContext
) -> ControllerDecision:
    if image.metadata_level < CONTROLLER_REGISTRATION_FROM:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_VERSION,
            f"Controllers can register from metadata.version {CONTROLLER_REGISTRATION_FROM} on; "
            f"this cluster is at {image.metadata_level}.",
        )
    record = controller_record(
        ControllerRegistration(
            request.controller_id,
            request.incarnation_id,
            read_endpoints(request.listeners),
            read_features(request.features),
        )
    )
    return Decision([record], ControllerRegistrationResponse(error_message=None))
