"""BrokerHeartbeat (key 63): a broker lives, and asks to be let in, put aside, or let go.

v1 reports log directories that failed, v2 those that take no new replicas.
"""

from enum import Enum, auto

from barnabas.controller import broker_lifecycle
from barnabas.controller.contacts import Contact
from barnabas.controller.decision import Context, Decision
from barnabas.metadata.features import CORDONED_DIRECTORIES_FROM, DIRECTORY_ASSIGNMENT_FROM
from barnabas.metadata.image import Image
from barnabas.metadata.states import BrokerState
from barnabas.wire.messages.broker_heartbeat import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
)
from barnabas.wire.schema import Message


class Standing(Enum):
    """What a broker may do."""

    FENCED = auto()  # nothing: it leads nothing and is in no in-sync set
    ACTIVE = auto()
    SHUTTING_DOWN = auto()  # it leads nothing any more, and waits until the others know
    MAY_STOP = auto()


def decide(request: BrokerHeartbeatRequest, image: Image, context: Context) -> Decision:
    broker = broker_lifecycle.require_epoch(request.broker_id, request.broker_epoch, image)
    before = _standing(broker)
    after = _next_standing(before, request, broker, image, context)
    records: list[Message] = []
    if after is not before:
        records += _move(after, broker, image, context)
    records += _directories(request, broker, image, context)
    begins_shutdown = before is Standing.ACTIVE and after is Standing.SHUTTING_DOWN
    contact = Contact(
        request.broker_id,
        request.broker_epoch,
        context.now_ms,
        request.current_metadata_offset,
        context.next_offset + len(records) - 1 if begins_shutdown else None,
    )
    response = BrokerHeartbeatResponse(
        is_caught_up=request.current_metadata_offset >= broker.epoch,
        is_fenced=after in (Standing.FENCED, Standing.MAY_STOP),
        should_shut_down=after is Standing.MAY_STOP,
    )
    return Decision(records, response, contact)


def _standing(broker: BrokerState) -> Standing:
    if broker.fenced:
        return Standing.FENCED
    return Standing.SHUTTING_DOWN if broker.in_controlled_shutdown else Standing.ACTIVE


def _next_standing(
    before: Standing,
    request: BrokerHeartbeatRequest,
    broker: BrokerState,
    image: Image,
    context: Context,
) -> Standing:
    match before:
        case Standing.FENCED if request.want_shut_down:
            return Standing.MAY_STOP
        case Standing.FENCED:
            # It must know of its own registration before it serves anybody.
            caught_up = request.current_metadata_offset >= broker.epoch
            return Standing.ACTIVE if caught_up and not request.want_fence else before
        case Standing.ACTIVE if request.want_shut_down:
            if not request.want_fence and image.topics.index.leads_anything(broker.broker_id):
                return Standing.SHUTTING_DOWN
            return Standing.MAY_STOP
        case Standing.ACTIVE:
            return Standing.FENCED if request.want_fence else before
        case Standing.SHUTTING_DOWN:
            if image.topics.index.leads_anything(broker.broker_id):
                return before
            slowest = context.contacts.lowest_offset(image.brokers)
            known_to_all = (
                slowest is None or context.contacts.shutdown_offset(broker.broker_id) <= slowest
            )
            return Standing.MAY_STOP if known_to_all else before
        case Standing.MAY_STOP:
            return before


def _move(standing: Standing, broker: BrokerState, image: Image, context: Context) -> list[Message]:
    match standing:
        case Standing.ACTIVE:
            return broker_lifecycle.unfence(broker, image, context)
        case Standing.SHUTTING_DOWN:
            return broker_lifecycle.begin_shutdown(broker, image, context)
        case Standing.FENCED | Standing.MAY_STOP:
            return [] if broker.fenced else broker_lifecycle.fence(broker, image, context)


def _directories(
    request: BrokerHeartbeatRequest, broker: BrokerState, image: Image, context: Context
) -> list[Message]:
    records: list[Message] = []
    if image.metadata_level >= DIRECTORY_ASSIGNMENT_FROM and request.offline_log_dirs:
        lost = request.offline_log_dirs
        records += broker_lifecycle.lose_directories(broker, lost, image, context)
    if image.metadata_level >= CORDONED_DIRECTORIES_FROM and request.cordoned_log_dirs is not None:
        records += broker_lifecycle.cordon_directories(broker, request.cordoned_log_dirs)
    return records
