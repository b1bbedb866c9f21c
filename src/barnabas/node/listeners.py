"""The listeners of a role: binds them, and builds the requests that register the node with them."""

import errno
import socket
from collections.abc import Iterable

from barnabas.config import BrokerSettings, Listener
from barnabas.metadata.features import SUPPORTED
from barnabas.node.errors import PortInUse
from barnabas.node.security import NodeSecurity
from barnabas.server.network.socket_server import SocketServer
from barnabas.wire.messages import registrations
from barnabas.wire.messages.registrations import (
    BrokerRegistrationRequest,
    ControllerRegistrationRequest,
)


def listen(
    network: SocketServer,
    listeners: Iterable[Listener],
    advertised: Iterable[Listener],
    security: NodeSecurity,
) -> list[Listener]:
    """Binds `listeners`. Returns the advertised ones, with host and port filled in if open.

    Raises PortInUse if another process has one of the ports.
    """
    ports = {listener.name: _listen(network, listener, security) for listener in listeners}
    return [
        listener._replace(
            host=listener.host or socket.getfqdn(), port=listener.port or ports[listener.name]
        )
        for listener in advertised
    ]


def _listen(network: SocketServer, listener: Listener, security: NodeSecurity) -> int:
    """Returns the actual port."""
    try:
        return network.listen(
            listener.name, listener.host, listener.port, security.of_listener(listener)
        ).port
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise PortInUse(listener.host, listener.port, "listeners") from error
        raise


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
        listeners=_wire_listeners(listeners),
        features=_supported_features(),
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
        listeners=_wire_listeners(listeners),
        features=_supported_features(),
    )


def _wire_listeners(listeners: Iterable[Listener]) -> list[registrations.Listener]:
    return [
        registrations.Listener(
            name=listener.name,
            host=listener.host,
            port=listener.port,
            security_protocol=listener.security_protocol.value,
        )
        for listener in listeners
    ]


def _supported_features() -> list[registrations.Feature]:
    return [
        registrations.Feature(
            name=name, min_supported_version=levels.min, max_supported_version=levels.max
        )
        for name, levels in SUPPORTED.items()
    ]
