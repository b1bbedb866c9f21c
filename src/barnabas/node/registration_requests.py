"""The requests by which a node registers with the controller."""

from collections.abc import Callable, Iterable
from typing import TypeVar

from barnabas.config import BrokerSettings, Listener
from barnabas.metadata.features import SUPPORTED
from barnabas.wire.messages import registrations
from barnabas.wire.messages.registrations import (
    BrokerRegistrationRequest,
    ControllerRegistrationRequest,
)

T = TypeVar("T")


def broker_registration_request(
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
        listeners=_listeners(registrations.Listener, listeners),
        features=_features(registrations.Feature),
        rack=settings["broker.rack"],
        log_dirs=directory_ids,
        previous_broker_epoch=previous_epoch,
    )


def controller_registration_request(
    settings: BrokerSettings, listeners: Iterable[Listener], incarnation_id: bytes
) -> ControllerRegistrationRequest:
    return ControllerRegistrationRequest(
        controller_id=settings.node_id,
        incarnation_id=incarnation_id,
        listeners=_listeners(registrations.Listener, listeners),
        features=_features(registrations.Feature),
    )


def _listeners(listener: Callable[..., T], listeners: Iterable[Listener]) -> list[T]:
    return [
        listener(
            name=item.name,
            host=item.host,
            port=item.port,
            security_protocol=item.security_protocol.value,
        )
        for item in listeners
    ]


def _features(feature: Callable[..., T]) -> list[T]:
    return [
        feature(name=name, min_supported_version=levels.min, max_supported_version=levels.max)
        for name, levels in SUPPORTED.items()
    ]
