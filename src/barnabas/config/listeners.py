"""Which addresses a node listens on and advertises, and what its roles require of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from barnabas.config.addresses import (
    Listener,
    SecurityProtocol,
    parse_listener,
    parse_protocols,
    parse_voter,
)


class Listeners(NamedTuple):
    """The outcome; with problems it is incomplete."""

    all: tuple[Listener, ...] = ()
    controller: tuple[Listener, ...] = ()
    advertised: tuple[Listener, ...] = ()
    advertised_controller: tuple[Listener, ...] = ()
    inter_broker_name: str = ""
    problems: tuple[str, ...] = ()


def resolve_listeners(values: Mapping[str, Any], given: Mapping[str, str]) -> Listeners:
    """The listeners of a node from its typed `values`; `given` tells what was set explicitly."""
    problems: list[str] = []
    protocols = _security_protocols(values, given, problems)
    if protocols is None:
        return Listeners(problems=tuple(problems))
    bound = _parse_listeners("listeners", values["listeners"], protocols, problems)
    advertised = bound
    if values["advertised.listeners"] is not None:
        advertised = _parse_listeners(
            "advertised.listeners", values["advertised.listeners"], protocols, problems
        )
    if problems:
        return Listeners(problems=tuple(problems))
    controller_names = values["controller.listener.names"]
    for_clients = tuple(each for each in advertised if each.name not in controller_names)
    inter_broker_name = (
        values["inter.broker.listener.name"] or values["security.inter.broker.protocol"]
    ).upper()
    problems += _clashes(bound)
    problems += _role_problems(values, bound, for_clients)
    problems += _inter_broker_problems(values, given, inter_broker_name, for_clients)
    problems += _quorum_problems(values)
    controller = tuple(each for each in bound if each.name in controller_names)
    by_name = {each.name: each for each in advertised}
    return Listeners(
        all=bound,
        controller=controller,
        advertised=for_clients,
        advertised_controller=tuple(by_name.get(each.name, each) for each in controller),
        inter_broker_name=inter_broker_name,
        problems=tuple(problems),
    )


def _security_protocols(
    values: Mapping[str, Any], given: Mapping[str, str], problems: list[str]
) -> dict[str, SecurityProtocol] | None:
    text = values["listener.security.protocol.map"]
    try:
        protocols = parse_protocols(text)
    except ValueError as problem:
        problems.append(f"Invalid listener.security.protocol.map {text}: {problem}")
        return None
    if "listener.security.protocol.map" not in given and not _any_is_secured(values["listeners"]):
        # With no map given, a plain node's controller listeners need not be in it.
        for name in values["controller.listener.names"]:
            protocols.setdefault(name, SecurityProtocol.PLAINTEXT)
    return protocols


def _any_is_secured(listeners: Iterable[str]) -> bool:
    secured = {"SSL", "SASL_PLAINTEXT", "SASL_SSL"}
    return any(each.partition("://")[0].upper() in secured for each in listeners)


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


def _clashes(listeners: tuple[Listener, ...]) -> Iterator[str]:
    names: set[str] = set()
    by_port: dict[int, list[Listener]] = {}
    for listener in listeners:
        if listener.name in names:
            yield f"listeners has {listener.name} twice; each needs a name of its own"
        names.add(listener.name)
        if listener.port:
            by_port.setdefault(listener.port, []).append(listener)
    for port, sharing in by_port.items():
        if len(sharing) > 1 and not _are_of_both_ip_versions(sharing):
            who = ", ".join(map(str, sharing))
            yield (
                f"listeners {who} share port {port}; only one IPv4 and one IPv6 address may do so"
            )


def _are_of_both_ip_versions(sharing: list[Listener]) -> bool:
    hosts = [each.host for each in sharing]
    is_v6 = [":" in host for host in hosts]
    is_v4 = [host.replace(".", "").isdigit() for host in hosts]
    return len(hosts) == 2 and any(is_v6) and any(is_v4)


def _role_problems(
    values: Mapping[str, Any], bound: tuple[Listener, ...], for_clients: tuple[Listener, ...]
) -> Iterator[str]:
    roles, controller_names = values["process.roles"], values["controller.listener.names"]
    bound_names = {each.name for each in bound}
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
        yield from _advertised_problems(bound_names, for_clients)
    for name in values["early.start.listeners"] or ():
        if name not in bound_names and name not in controller_names:
            yield (
                f"early.start.listeners has {name}, which is neither in listeners "
                f"nor in controller.listener.names"
            )


def _advertised_problems(bound_names: set[str], for_clients: tuple[Listener, ...]) -> Iterator[str]:
    if not for_clients:
        yield (
            "advertised.listeners has no listener for clients; "
            "are all of them in controller.listener.names?"
        )
    for listener in for_clients:
        if listener.name not in bound_names:
            yield f"advertised.listeners has {listener.name}, which is not in listeners"
        if listener.host == "0.0.0.0":
            yield (
                f"advertised.listeners cannot use {listener}: clients cannot reach 0.0.0.0; "
                f"set advertised.listeners to an address that they can"
            )


def _inter_broker_problems(
    values: Mapping[str, Any],
    given: Mapping[str, str],
    name: str,
    for_clients: tuple[Listener, ...],
) -> Iterator[str]:
    if "inter.broker.listener.name" in given and "security.inter.broker.protocol" in given:
        yield "Set either inter.broker.listener.name or security.inter.broker.protocol, not both"
    if "broker" in values["process.roles"] and for_clients:
        names = [each.name for each in for_clients]
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
