"""What can happen to a cluster of three, and what undoes it."""

import random
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass

from tests.cluster.cluster import Cluster
from tests.cluster.node import BARNABAS, ProcessNode


@dataclass(slots=True, frozen=True)
class Fault:
    """Lasts as long as the context; `node` is the one it happens to."""

    name: str
    node: ProcessNode
    lasting: AbstractContextManager[None]
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
    """TimeoutError, once it is over, for a node that had to be killed after all."""
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
    for each in cluster.nodes.values():
        cluster.kill_node(each)
    yield
    for each in cluster.nodes.values():
        cluster.start_node(each)


@contextmanager
def isolated(cluster: Cluster, node: ProcessNode, _: random.Random) -> Iterator[None]:
    with cut(cluster, ways_from(cluster, node) + ways_to(cluster, node)):
        yield


@contextmanager
def unheard(cluster: Cluster, node: ProcessNode, _: random.Random) -> Iterator[None]:
    """It hears the others; they do not hear it."""
    with cut(cluster, ways_from(cluster, node)):
        yield


@contextmanager
def deaf(cluster: Cluster, node: ProcessNode, _: random.Random) -> Iterator[None]:
    with cut(cluster, ways_to(cluster, node)):
        yield


@contextmanager
def parted(cluster: Cluster, node: ProcessNode, moments: random.Random) -> Iterator[None]:
    """From one of the others, while both are heard by the third."""
    ways = moments.choice([[way] for way in ways_from(cluster, node)])
    if moments.random() < 0.5:
        ways = [*ways, *((target, source) for source, target in ways)]
    with cut(cluster, ways):
        yield


@contextmanager
def far(cluster: Cluster, node: ProcessNode, moments: random.Random) -> Iterator[None]:
    assert cluster.network
    ways = ways_from(cluster, node) + ways_to(cluster, node)
    cluster.network.delay(ways, moments.uniform(0.02, 0.3))
    yield
    cluster.network.delay(ways, 0)


@contextmanager
def slow(_: Cluster, node: ProcessNode, moments: random.Random) -> Iterator[None]:
    node.slow_disk(moments.uniform(0.05, 1))
    yield
    node.slow_disk(0)


@contextmanager
def cut(cluster: Cluster, ways: list[tuple[int, int]]) -> Iterator[None]:
    assert cluster.network
    cluster.network.cut(ways)
    yield
    cluster.network.heal(ways)


def ways_from(cluster: Cluster, node: ProcessNode) -> list[tuple[int, int]]:
    return [(node.node_id, other) for other in cluster.nodes if other != node.node_id]


def ways_to(cluster: Cluster, node: ProcessNode) -> list[tuple[int, int]]:
    return [(other, node.node_id) for other in cluster.nodes if other != node.node_id]


Happening = Callable[[Cluster, ProcessNode, random.Random], AbstractContextManager[None]]

HAPPENINGS: dict[str, tuple[Happening, int]] = {
    "kill -9 of": (killed, 4),
    "clean stop of": (stopped, 2),
    "pause of": (paused, 3),
    "isolation of": (isolated, 3),
    "nobody hears": (unheard, 2),
    "nothing reaches": (deaf, 2),
    "a cut link of": (parted, 3),
    "long ways to": (far, 1),
    "slow disk of": (slow, 2),
    "kill -9 of all, also": (all_killed, 1),
}
"""With how often each is chosen."""

OF_THE_PROCESS = {killed, stopped, paused, all_killed}
"""Two of these at once would meet a process that is not there."""


def chosen(cluster: Cluster, moments: random.Random, topic: str) -> list[Fault]:
    """What happens next: mostly one thing, sometimes two at once to different nodes."""
    nodes = [target(cluster, moments, topic)]
    if moments.random() < 0.3:
        nodes.append(moments.choice([each for each in cluster.nodes.values() if each not in nodes]))
    names, weights = list(HAPPENINGS), [weight for _, weight in HAPPENINGS.values()]
    faults: list[Fault] = []
    happened: set[Happening] = set()
    for node in nodes:
        (name,) = moments.choices(names, weights)
        happening, _ = HAPPENINGS[name]
        if happening is slow and node.program is not BARNABAS:
            continue
        if faults and all_killed in {*happened, happening}:
            continue
        happened.add(happening)
        lasting = happening(cluster, node, moments)
        faults.append(Fault(name, node, lasting, kills=happening in (killed, all_killed)))
    return faults


def target(cluster: Cluster, moments: random.Random, topic: str) -> ProcessNode:
    """Whoever it is, the active controller, or a leader, all as likely."""
    match moments.choice(("any", "controller", "leader")):
        case "controller":
            seen = cluster.quorum_view()
            found = seen.leader if seen else -1
        case "leader":
            view = cluster.metadata()
            replicas = view.partitions.get((topic, 0)) if view else None
            found = replicas.leader if replicas else -1
        case _:
            found = -1
    return cluster.nodes.get(found) or moments.choice(list(cluster.nodes.values()))
