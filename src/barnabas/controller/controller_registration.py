"""ControllerRegistration (key 70): a controller says where it listens and what it supports."""

from barnabas.controller.context import ControllerContext, ControllerDecision
from barnabas.decision import Decision
from barnabas.metadata.features import CONTROLLER_REGISTRATION_FROM
from barnabas.metadata.image import MetadataImage
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.controller_registration import (
    ControllerRegistrationRequest,
    ControllerRegistrationResponse,
)
from barnabas.wire.messages.metadata_records import (
    ControllerEndpoint,
    ControllerFeature,
    RegisterControllerRecord,
)


def decide(
    request: ControllerRegistrationRequest, image: MetadataImage, context: ControllerContext
) -> ControllerDecision:
    if image.metadata_level < CONTROLLER_REGISTRATION_FROM:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_VERSION,
            f"Controllers register from metadata.version {CONTROLLER_REGISTRATION_FROM} on; "
            f"this cluster is at {image.metadata_level}.",
        )
    record = RegisterControllerRecord(
        controller_id=request.controller_id,
        incarnation_id=request.incarnation_id,
        end_points=[
            ControllerEndpoint(
                name=listener.name,
                host=listener.host,
                port=listener.port,
                security_protocol=listener.security_protocol,
            )
            for listener in request.listeners
        ],
        features=[
            ControllerFeature(
                name=feature.name,
                min_supported_version=feature.min_supported_version,
                max_supported_version=feature.max_supported_version,
            )
            for feature in request.features
        ],
    )
    return Decision([record], ControllerRegistrationResponse(error_message=None))
