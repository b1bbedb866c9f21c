"""BrokerHeartbeat (key 63): renews a broker's session, and unfences, fences or stops it.

v1 reports log directories that failed, v2 cordoned ones, which take no new replicas.
"""

from enum import Enum, auto

from barnabas.controller import broker_lifecycle
from barnabas.controller.context import ControllerContext, ControllerDecision
from barnabas.controller.heartbeat_tracker import BrokerContact
from barnabas.decision import Decision
from barnabas.metadata.features import CORDONED_DIRECTORIES_FROM, DIRECTORY_ASSIGNMENT_FROM
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.states import BrokerRegistration
from barnabas.wire.messages.registrations import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from barnabas.wire.schema import Message


class BrokerControlState(Enum):
    """The state of a broker as the controller sees it; the names are those of Kafka."""

    FENCED = auto()  # leads no partition and is in no ISR
    UNFENCED = auto()
    CONTROLLED_SHUTDOWN = auto()  # leads no partition, and waits until all brokers know that
    SHUTDOWN_NOW = auto()


def decide(
    request: BrokerHeartbeatRequest, image: MetadataImage, context: ControllerContext
) -> ControllerDecision:
    broker = broker_lifecycle.require_broker_epoch(request.broker_id, request.broker_epoch, image)
    before = _control_state(broker)
    after = _next_state(before, request, broker, image, context)
    records: list[Message] = []
    if after is not before:
        records += _state_records(after, broker, image, context)
    records += _directory_records(request, broker, image, context)
    begins_shutdown = (
        before is BrokerControlState.UNFENCED and after is BrokerControlState.CONTROLLED_SHUTDOWN
    )
    contact = BrokerContact(
        request.broker_id,
        request.broker_epoch,
        context.now_ms,
        request.current_metadata_offset,
        context.next_offset + len(records) - 1 if begins_shutdown else None,
    )
    response = BrokerHeartbeatResponse(
        is_caught_up=request.current_metadata_offset >= broker.epoch,
        is_fenced=after in (BrokerControlState.FENCED, BrokerControlState.SHUTDOWN_NOW),
        should_shut_down=after is BrokerControlState.SHUTDOWN_NOW,
    )
    return Decision(records, response, [contact])


def _control_state(broker: BrokerRegistration) -> BrokerControlState:
    if broker.fenced:
        return BrokerControlState.FENCED
    return (
        BrokerControlState.CONTROLLED_SHUTDOWN
        if broker.in_controlled_shutdown
        else BrokerControlState.UNFENCED
    )


def _next_state(
    before: BrokerControlState,
    request: BrokerHeartbeatRequest,
    broker: BrokerRegistration,
    image: MetadataImage,
    context: ControllerContext,
) -> BrokerControlState:
    match before:
        case BrokerControlState.FENCED if request.want_shut_down:
            return BrokerControlState.SHUTDOWN_NOW
        case BrokerControlState.FENCED:
            # It must have read its own registration before it serves clients.
            caught_up = request.current_metadata_offset >= broker.epoch
            return BrokerControlState.UNFENCED if caught_up and not request.want_fence else before
        case BrokerControlState.UNFENCED if request.want_shut_down:
            if not request.want_fence and image.topics.index.leads_anything(broker.broker_id):
                return BrokerControlState.CONTROLLED_SHUTDOWN
            return BrokerControlState.SHUTDOWN_NOW
        case BrokerControlState.UNFENCED:
            return BrokerControlState.FENCED if request.want_fence else before
        case BrokerControlState.CONTROLLED_SHUTDOWN:
            if image.topics.index.leads_anything(broker.broker_id):
                return before
            lowest_offset = context.heartbeats.lowest_active_offset(image.brokers)
            known_to_all = (
                lowest_offset is None
                or context.heartbeats.controlled_shutdown_offset(broker.broker_id) <= lowest_offset
            )
            return BrokerControlState.SHUTDOWN_NOW if known_to_all else before
        case BrokerControlState.SHUTDOWN_NOW:
            return before


def _state_records(
    state: BrokerControlState,
    broker: BrokerRegistration,
    image: MetadataImage,
    context: ControllerContext,
) -> list[Message]:
    match state:
        case BrokerControlState.UNFENCED:
            return broker_lifecycle.unfence(broker, image, context)
        case BrokerControlState.CONTROLLED_SHUTDOWN:
            return broker_lifecycle.begin_controlled_shutdown(broker, image, context)
        case BrokerControlState.FENCED | BrokerControlState.SHUTDOWN_NOW:
            return [] if broker.fenced else broker_lifecycle.fence(broker, image, context)


def _directory_records(
    request: BrokerHeartbeatRequest,
    broker: BrokerRegistration,
    image: MetadataImage,
    context: ControllerContext,
) -> list[Message]:
    records: list[Message] = []
    if image.metadata_level >= DIRECTORY_ASSIGNMENT_FROM and request.offline_log_dirs:
        lost = request.offline_log_dirs
        records += broker_lifecycle.take_directories_offline(broker, lost, image, context)
    if image.metadata_level >= CORDONED_DIRECTORIES_FROM and request.cordoned_log_dirs is not None:
        records += broker_lifecycle.cordon_directories(broker, request.cordoned_log_dirs)
    return records
