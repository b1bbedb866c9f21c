"""Faults of a cluster of three nodes, and how they end."""

import random
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass

from tests.cluster.cluster import Cluster
from tests.cluster.node import BARNABAS, ProcessNode


@dataclass(slots=True, frozen=True)
class Fault:
    """A fault of `node` that lasts as long as its context."""

    name: str
    node: ProcessNode
    context: AbstractContextManager[None]
    kills: bool

    def __str__(self) -> str:
        return f"{self.name} {self.node.node_id}"


@contextmanager
def killed(cluster: Cluster, node: ProcessNode, _: random.Random) -> Iterator[None]:
    cluster.kill_node(node)
    yield
    cluster.start_node(node)


@contextmanager
def stopped(cluster: Cluster, node: ProcessNode, _: random.Random) -> Iterator[None]:
    """Raises TimeoutError at the end if the node did not stop and was killed."""
    too_late: TimeoutError | None = None
    try:
        cluster.stop_node(node)
    except TimeoutError as failure:
        too_late = failure
    yield
    cluster.start_node(node)
    if too_late:
        raise too_late


@contextmanager
def paused(_: Cluster, node: ProcessNode, __: random.Random) -> Iterator[None]:
    node.pause()
    yield
    node.resume()


@contextmanager
def all_killed(cluster: Cluster, _: ProcessNode, __: random.Random) -> Iterator[None]:
    for node in cluster.nodes.values():
        cluster.kill_node(node)
    yield
    for node in cluster.nodes.values():
        cluster.start_node(node)


@contextmanager
def isolated(cluster: Cluster, node: ProcessNode, _: random.Random) -> Iterator[None]:
    with cut(cluster, outgoing_links(cluster, node) + incoming_links(cluster, node)):
        yield


@contextmanager
def outgoing_cut(cluster: Cluster, node: ProcessNode, _: random.Random) -> Iterator[None]:
    """The node receives from the others; they do not receive from it."""
    with cut(cluster, outgoing_links(cluster, node)):
        yield


@contextmanager
def incoming_cut(cluster: Cluster, node: ProcessNode, _: random.Random) -> Iterator[None]:
    with cut(cluster, incoming_links(cluster, node)):
        yield


@contextmanager
def link_cut(cluster: Cluster, node: ProcessNode, rng: random.Random) -> Iterator[None]:
    """Cuts the link to one of the others, in one or both directions."""
    links = rng.choice([[link] for link in outgoing_links(cluster, node)])
    if rng.random() < 0.5:
        links = [*links, *((target, source) for source, target in links)]
    with cut(cluster, links):
        yield


@contextmanager
def delayed(cluster: Cluster, node: ProcessNode, rng: random.Random) -> Iterator[None]:
    assert cluster.network
    links = outgoing_links(cluster, node) + incoming_links(cluster, node)
    cluster.network.delay(links, rng.uniform(0.02, 0.3))
    yield
    cluster.network.delay(links, 0)


@contextmanager
def slow_disk_fault(_: Cluster, node: ProcessNode, rng: random.Random) -> Iterator[None]:
    node.slow_disk(rng.uniform(0.05, 1))
    yield
    node.slow_disk(0)


@contextmanager
def cut(cluster: Cluster, links: list[tuple[int, int]]) -> Iterator[None]:
    assert cluster.network
    cluster.network.cut(links)
    yield
    cluster.network.heal(links)


def outgoing_links(cluster: Cluster, node: ProcessNode) -> list[tuple[int, int]]:
    return [(node.node_id, other) for other in cluster.nodes if other != node.node_id]


def incoming_links(cluster: Cluster, node: ProcessNode) -> list[tuple[int, int]]:
    return [(other, node.node_id) for other in cluster.nodes if other != node.node_id]


FaultFactory = Callable[[Cluster, ProcessNode, random.Random], AbstractContextManager[None]]

FAULTS: dict[str, tuple[FaultFactory, int]] = {
    "kill -9 of": (killed, 4),
    "clean stop of": (stopped, 2),
    "pause of": (paused, 3),
    "isolation of": (isolated, 3),
    "outgoing links cut of": (outgoing_cut, 2),
    "incoming links cut of": (incoming_cut, 2),
    "a cut link of": (link_cut, 3),
    "network delay of": (delayed, 1),
    "slow disk of": (slow_disk_fault, 2),
    "kill -9 of all and": (all_killed, 1),
}
"""Faults by name, with their weights."""

PROCESS_FAULTS = {killed, stopped, paused, all_killed}
"""Two of these at once would need a process that does not run."""


def choose_faults(cluster: Cluster, rng: random.Random, topic: str) -> list[Fault]:
    """Returns the next faults: mostly one, sometimes two of different nodes."""
    nodes = [target(cluster, rng, topic)]
    if rng.random() < 0.3:
        nodes.append(rng.choice([other for other in cluster.nodes.values() if other not in nodes]))
    names, weights = list(FAULTS), [weight for _, weight in FAULTS.values()]
    faults: list[Fault] = []
    used: set[FaultFactory] = set()
    for node in nodes:
        (name,) = rng.choices(names, weights)
        factory, _ = FAULTS[name]
        if factory is slow_disk_fault and node.program is not BARNABAS:
            continue
        if faults and all_killed in {*used, factory}:
            continue
        used.add(factory)
        context = factory(cluster, node, rng)
        faults.append(Fault(name, node, context, kills=factory in (killed, all_killed)))
    return faults


def target(cluster: Cluster, rng: random.Random, topic: str) -> ProcessNode:
    """Returns any node, the active controller, or a leader, equally likely."""
    match rng.choice(("any", "controller", "leader")):
        case "controller":
            view = cluster.quorum_view()
            node_id = view.leader if view else -1
        case "leader":
            metadata = cluster.metadata()
            replicas = metadata.partitions.get((topic, 0)) if metadata else None
            node_id = replicas.leader if replicas else -1
        case _:
            node_id = -1
    return cluster.nodes.get(node_id) or rng.choice(list(cluster.nodes.values()))
