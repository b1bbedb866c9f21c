"""The listeners of a node, bound and advertised, and the rules of its roles for them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from barnabas.config.addresses import (
    ALL_INTERFACES,
    Listener,
    SecurityProtocol,
    parse_endpoint,
    parse_listener,
    parse_protocols,
    parse_voter,
)

_LOOPBACK_HOSTS = ("localhost", "127.0.0.1", "::1")


class Listeners(NamedTuple):
    """The listeners of a node; with problems they are incomplete."""

    all: tuple[Listener, ...] = ()
    controller: tuple[Listener, ...] = ()
    advertised: tuple[Listener, ...] = ()
    advertised_controller: tuple[Listener, ...] = ()
    inter_broker_name: str = ""
    protocols: Mapping[str, SecurityProtocol] = MappingProxyType({})
    problems: tuple[str, ...] = ()


def resolve_listeners(values: Mapping[str, Any], explicit: Mapping[str, str]) -> Listeners:
    """Returns the listeners of a node; `explicit` are the texts of settings that are set."""
    problems: list[str] = []
    protocols = _security_protocols(values, explicit, problems)
    if protocols is None:
        return Listeners(problems=tuple(problems))
    bound = _parse_listeners("listeners", values["listeners"], protocols, problems)
    advertised = _advertised_by_default(values, bound)
    if values["advertised.listeners"] is not None:
        advertised = _parse_listeners(
            "advertised.listeners", values["advertised.listeners"], protocols, problems
        )
    if problems:
        return Listeners(problems=tuple(problems))
    controller_names = values["controller.listener.names"]
    client_listeners = tuple(
        listener for listener in advertised if listener.name not in controller_names
    )
    inter_broker_name = (
        values["inter.broker.listener.name"] or values["security.inter.broker.protocol"]
    ).upper()
    problems += _without_protocol(controller_names, protocols)
    problems += _clashes(bound)
    problems += _role_problems(values, bound, client_listeners)
    problems += _inter_broker_problems(values, explicit, inter_broker_name, client_listeners)
    problems += _quorum_problems(values)
    controller = tuple(listener for listener in bound if listener.name in controller_names)
    by_name = {listener.name: listener for listener in advertised}
    return Listeners(
        all=bound,
        controller=controller,
        advertised=client_listeners,
        advertised_controller=tuple(
            by_name.get(listener.name, listener) for listener in controller
        ),
        inter_broker_name=inter_broker_name,
        protocols=protocols,
        problems=tuple(problems),
    )


def _advertised_by_default(
    values: Mapping[str, Any], bound: tuple[Listener, ...]
) -> tuple[Listener, ...]:
    """Returns what is advertised if advertised.listeners is not set: the listeners themselves.

    With all controllers on this machine the whole cluster is, so a listener on all interfaces is
    advertised to the other nodes as localhost; clients get the address that they connect to.
    """
    voters = [parse_voter(text).endpoint for text in values["controller.quorum.voters"]]
    servers = [parse_endpoint(text) for text in values["controller.quorum.bootstrap.servers"]]
    controllers = voters or servers
    if not controllers or any(host not in _LOOPBACK_HOSTS for host, _ in controllers):
        return bound
    return tuple(
        listener._replace(host="localhost") if listener.host in ALL_INTERFACES else listener
        for listener in bound
    )


def _security_protocols(
    values: Mapping[str, Any], explicit: Mapping[str, str], problems: list[str]
) -> dict[str, SecurityProtocol] | None:
    text = values["listener.security.protocol.map"]
    try:
        protocols = parse_protocols(text)
    except ValueError as problem:
        problems.append(f"Invalid listener.security.protocol.map {text}: {problem}")
        return None
    if "listener.security.protocol.map" not in explicit and not _has_secured_listener(
        values["listeners"]
    ):
        # Without a map and without TLS or SASL, controller listeners are plaintext.
        for name in values["controller.listener.names"]:
            protocols.setdefault(name, SecurityProtocol.PLAINTEXT)
    return protocols


def _has_secured_listener(listeners: Iterable[str]) -> bool:
    secured = {"SSL", "SASL_PLAINTEXT", "SASL_SSL"}
    return any(listener.partition("://")[0].upper() in secured for listener in listeners)


def _parse_listeners(
    setting: str,
    texts: Iterable[str],
    protocols: dict[str, SecurityProtocol],
    problems: list[str],
) -> tuple[Listener, ...]:
    listeners = []
    for text in texts:
        try:
            listeners.append(parse_listener(text, protocols))
        except ValueError as problem:
            problems.append(f"Invalid {setting} entry {text}: {problem}")
    return tuple(listeners)


def _without_protocol(
    controller_names: Iterable[str], protocols: Mapping[str, SecurityProtocol]
) -> Iterator[str]:
    """A broker connects to controllers by the protocol of a listener that it does not have."""
    for name in controller_names:
        if name not in protocols:
            yield f"listener.security.protocol.map has no {name} of controller.listener.names"


def _clashes(listeners: tuple[Listener, ...]) -> Iterator[str]:
    names: set[str] = set()
    by_port: dict[int, list[Listener]] = {}
    for listener in listeners:
        if listener.name in names:
            yield f"listeners has {listener.name} twice; every listener needs its own name"
        names.add(listener.name)
        if listener.port:
            by_port.setdefault(listener.port, []).append(listener)
    for port, sharing in by_port.items():
        if len(sharing) > 1 and not _are_of_both_ip_versions(sharing):
            addresses = ", ".join(map(str, sharing))
            yield (
                f"listeners {addresses} share port {port}; "
                f"only one IPv4 and one IPv6 address may do so"
            )


def _are_of_both_ip_versions(sharing: list[Listener]) -> bool:
    hosts = [listener.host for listener in sharing]
    is_v6 = [":" in host for host in hosts]
    is_v4 = [host.replace(".", "").isdigit() for host in hosts]
    return len(hosts) == 2 and any(is_v6) and any(is_v4)


def _role_problems(
    values: Mapping[str, Any], bound: tuple[Listener, ...], client_listeners: tuple[Listener, ...]
) -> Iterator[str]:
    roles, controller_names = values["process.roles"], values["controller.listener.names"]
    bound_names = {listener.name for listener in bound}
    listed = ",".join(controller_names)
    if "controller" in roles:
        if not bound_names.issuperset(controller_names):
            yield (
                f"controller.listener.names ({listed}) must all be in listeners "
                f"of a node that has the role controller"
            )
        if "broker" not in roles and bound_names.difference(controller_names):
            yield (
                f"listeners of a node that is only a controller may have no names but those "
                f"of controller.listener.names ({listed})"
            )
    elif bound_names.intersection(controller_names):
        yield (
            f"listeners of a node that is only a broker may have none of "
            f"controller.listener.names ({listed})"
        )
    if "broker" in roles:
        yield from _advertised_problems(bound_names, client_listeners)
    for name in values["early.start.listeners"] or ():
        if name not in bound_names and name not in controller_names:
            yield (
                f"early.start.listeners has {name}, which is neither in listeners "
                f"nor in controller.listener.names"
            )


def _advertised_problems(
    bound_names: set[str], client_listeners: tuple[Listener, ...]
) -> Iterator[str]:
    if not client_listeners:
        yield (
            "advertised.listeners has no listener for clients; "
            "are all of them in controller.listener.names?"
        )
    for listener in client_listeners:
        if listener.name not in bound_names:
            yield f"advertised.listeners has {listener.name}, which is not in listeners"
        if listener.host == "0.0.0.0":
            yield (
                f"advertised.listeners cannot use {listener}: clients cannot reach 0.0.0.0; "
                f"set advertised.listeners to an address that they can"
            )


def _inter_broker_problems(
    values: Mapping[str, Any],
    explicit: Mapping[str, str],
    name: str,
    client_listeners: tuple[Listener, ...],
) -> Iterator[str]:
    if "inter.broker.listener.name" in explicit and "security.inter.broker.protocol" in explicit:
        yield "Set either inter.broker.listener.name or security.inter.broker.protocol, not both"
    if "broker" in values["process.roles"] and client_listeners:
        names = [listener.name for listener in client_listeners]
        if name not in names:
            yield (
                f"inter.broker.listener.name ({name}) must be one of the advertised listeners: "
                f"{', '.join(names)}"
            )


def _quorum_problems(values: Mapping[str, Any]) -> Iterator[str]:
    voters = [parse_voter(text).node_id for text in values["controller.quorum.voters"]]
    if not voters and not values["controller.quorum.bootstrap.servers"]:
        yield "Set controller.quorum.bootstrap.servers or controller.quorum.voters"
    node_id = values["node.id"]
    is_controller = "controller" in values["process.roles"]
    if voters and is_controller and node_id not in voters:
        yield f"controller.quorum.voters must include node.id {node_id}, which is a controller"
    if node_id in voters and not is_controller:
        yield f"controller.quorum.voters has node.id {node_id}, which is not a controller"
