"""How a node makes itself known to the controller, and shows that it lives."""

from collections.abc import Iterable

from barnabas.config import BrokerSettings, Listener
from barnabas.metadata.features import SUPPORTED
from barnabas.wire.messages import broker_registration, controller_registration
from barnabas.wire.messages.broker_registration import BrokerRegistrationRequest
from barnabas.wire.messages.controller_registration import ControllerRegistrationRequest


def broker_request(
    settings: BrokerSettings,
    listeners: Iterable[Listener],
    *,
    cluster_id: str,
    incarnation_id: bytes,
    directory_ids: list[bytes],
    previous_epoch: int,
) -> BrokerRegistrationRequest:
    return BrokerRegistrationRequest(
        broker_id=settings.node_id,
        cluster_id=cluster_id,
        incarnation_id=incarnation_id,
        listeners=[
            broker_registration.Listener(
                name=listener.name,
                host=listener.host,
                port=listener.port,
                security_protocol=listener.security_protocol.value,
            )
            for listener in listeners
        ],
        features=[
            broker_registration.Feature(
                name=name, min_supported_version=levels.min, max_supported_version=levels.max
            )
            for name, levels in SUPPORTED.items()
        ],
        rack=settings["broker.rack"],
        log_dirs=directory_ids,
        previous_broker_epoch=previous_epoch,
    )


def controller_request(
    settings: BrokerSettings, listeners: Iterable[Listener], incarnation_id: bytes
) -> ControllerRegistrationRequest:
    return ControllerRegistrationRequest(
        controller_id=settings.node_id,
        incarnation_id=incarnation_id,
        listeners=[
            controller_registration.Listener(
                name=listener.name,
                host=listener.host,
                port=listener.port,
                security_protocol=listener.security_protocol.value,
            )
            for listener in listeners
        ],
        features=[
            controller_registration.Feature(
                name=name, min_supported_version=levels.min, max_supported_version=levels.max
            )
            for name, levels in SUPPORTED.items()
        ],
    )
