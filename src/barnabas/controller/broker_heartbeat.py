"""BrokerHeartbeat (key 63): a broker lives, and asks to be let in, put aside, or let go.

v1 reports log directories that failed, v2 those that take no new replicas.
"""

from enum import Enum, auto

from barnabas.controller import broker_lifecycle
from barnabas.controller.context import ControllerContext, ControllerDecision
from barnabas.controller.heartbeat_tracker import BrokerContact
from barnabas.decision import Decision
from barnabas.metadata.features import CORDONED_DIRECTORIES_FROM, DIRECTORY_ASSIGNMENT_FROM
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.states import BrokerRegistration
from barnabas.wire.messages.broker_heartbeat import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
)
from barnabas.wire.schema import Message


class BrokerControlState(Enum):
    """What a broker may do."""

    FENCED = auto()  # nothing: it leads nothing and is in no in-sync set
    UNFENCED = auto()
    CONTROLLED_SHUTDOWN = auto()  # it leads nothing any more, and waits until the others know
    SHUTDOWN_NOW = auto()


def decide(
    request: BrokerHeartbeatRequest, image: MetadataImage, context: ControllerContext
) -> ControllerDecision:
    broker = broker_lifecycle.require_broker_epoch(request.broker_id, request.broker_epoch, image)
    before = _standing(broker)
    after = _next_standing(before, request, broker, image, context)
    records: list[Message] = []
    if after is not before:
        records += _move(after, broker, image, context)
    records += _directories(request, broker, image, context)
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


def _standing(broker: BrokerRegistration) -> BrokerControlState:
    if broker.fenced:
        return BrokerControlState.FENCED
    return (
        BrokerControlState.CONTROLLED_SHUTDOWN
        if broker.in_controlled_shutdown
        else BrokerControlState.UNFENCED
    )


def _next_standing(
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
            # It must know of its own registration before it serves anybody.
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
            slowest = context.heartbeats.lowest_active_offset(image.brokers)
            known_to_all = (
                slowest is None
                or context.heartbeats.controlled_shutdown_offset(broker.broker_id) <= slowest
            )
            return BrokerControlState.SHUTDOWN_NOW if known_to_all else before
        case BrokerControlState.SHUTDOWN_NOW:
            return before


def _move(
    standing: BrokerControlState,
    broker: BrokerRegistration,
    image: MetadataImage,
    context: ControllerContext,
) -> list[Message]:
    match standing:
        case BrokerControlState.UNFENCED:
            return broker_lifecycle.unfence(broker, image, context)
        case BrokerControlState.CONTROLLED_SHUTDOWN:
            return broker_lifecycle.begin_controlled_shutdown(broker, image, context)
        case BrokerControlState.FENCED | BrokerControlState.SHUTDOWN_NOW:
            return [] if broker.fenced else broker_lifecycle.fence(broker, image, context)


def _directories(
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
