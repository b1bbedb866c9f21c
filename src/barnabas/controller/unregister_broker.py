"""UnregisterBroker (key 64): removes the registration of a broker."""

from barnabas.controller import broker_lifecycle
from barnabas.controller.context import ControllerContext, ControllerDecision
from barnabas.decision import Decision
from barnabas.metadata.image import MetadataImage
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.unregister_broker import (
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
)


def decide(
    request: UnregisterBrokerRequest, image: MetadataImage, context: ControllerContext
) -> ControllerDecision:
    broker = image.brokers.get(request.broker_id)
    if broker is None:
        raise KafkaError(
            ErrorCode.BROKER_ID_NOT_REGISTERED, f"Broker {request.broker_id} is not registered."
        )
    records = broker_lifecycle.unregister(broker, image, context)
    return Decision(records, UnregisterBrokerResponse(error_message=None))
