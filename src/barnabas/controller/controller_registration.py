"""ControllerRegistration (key 70): registers the listeners and features of a controller."""

from barnabas.controller.context import ControllerContext, ControllerDecision
from barnabas.decision import Decision
from barnabas.metadata.features import CONTROLLER_REGISTRATION_FROM
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.replay import read_endpoints, read_features
from barnabas.metadata.snapshot import controller_record
from barnabas.metadata.states import ControllerRegistration
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.controller_registration import (
    ControllerRegistrationRequest,
    ControllerRegistrationResponse,
)


def decide(
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
