"""Addresses in settings: listeners, endpoints and quorum voters, parsed to frozen values."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

ALL_INTERFACES = ("0.0.0.0", "::")
"""Hosts that a listener can bind and no client can connect to."""


class SecurityProtocol(IntEnum):
    """The security of a listener, with the numbers of the registration records."""

    PLAINTEXT = 0
    SSL = 1
    SASL_PLAINTEXT = 2
    SASL_SSL = 3


class Listener(NamedTuple):
    """A named address. An empty host binds every interface and advertises this host's name."""

    name: str
    host: str
    port: int
    security_protocol: SecurityProtocol

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.name}://{host}:{self.port}"


class Endpoint(NamedTuple):
    host: str
    port: int


class Voter(NamedTuple):
    node_id: int
    endpoint: Endpoint


def parse_listener(text: str, protocols: dict[str, SecurityProtocol]) -> Listener:
    """Parses NAME://host:port. Raises ValueError if it is malformed."""
    name, separator, address = text.partition("://")
    if not separator or not name:
        raise ValueError(f"{text} is not of the form NAME://host:port")
    host, port = _host_and_port(address, text, form="NAME://host:port")
    protocol = protocols.get(name.upper())
    if protocol is None:
        raise ValueError(f"No security protocol defined for listener {name.upper()}")
    return Listener(name.upper(), host, port, protocol)


def parse_protocols(text: str) -> dict[str, SecurityProtocol]:
    """Parses NAME:PROTOCOL,... Raises ValueError for a malformed entry."""
    protocols: dict[str, SecurityProtocol] = {}
    for entry in filter(None, map(str.strip, text.split(","))):
        name, colon, protocol = entry.rpartition(":")
        if not colon or not name:
            raise ValueError(f"{entry} is not of the form NAME:PROTOCOL")
        try:
            protocols[name.strip().upper()] = SecurityProtocol[protocol.strip().upper()]
        except KeyError:
            names = ", ".join(SecurityProtocol.__members__)
            raise ValueError(f"{protocol} is not a security protocol; use one of {names}") from None
    return protocols


def parse_endpoint(text: str) -> Endpoint:
    """Parses host:port. Raises ValueError if it is malformed."""
    host, port = _host_and_port(text, text, form="host:port")
    if not host:
        raise ValueError(f"{text} has no host; entries are of the form host:port")
    return Endpoint(host, port)


def parse_voter(text: str) -> Voter:
    """Parses id@host:port. Raises ValueError if it is malformed."""
    node_id, separator, address = text.partition("@")
    if not separator or not (node_id.isascii() and node_id.isdigit()):
        raise ValueError(f"{text} is not of the form id@host:port")
    return Voter(int(node_id), parse_endpoint(address))


def parse_ip_overrides(text: str) -> dict[str, int]:
    """Parses host:count,... of max.connections.per.ip.overrides."""
    overrides: dict[str, int] = {}
    for entry in filter(None, map(str.strip, text.split(","))):
        host, _, count = entry.rpartition(":")
        if not host or not (count.isascii() and count.isdigit()):
            raise ValueError(f"{entry} is not of the form host:count")
        overrides[host] = int(count)
    return overrides


def _host_and_port(address: str, text: str, *, form: str) -> tuple[str, int]:
    host, colon, port = address.rpartition(":")
    if not colon or not (port.isascii() and port.isdigit()) or int(port) > 65535:
        raise ValueError(f"{text} is not of the form {form}")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    return host, int(port)
