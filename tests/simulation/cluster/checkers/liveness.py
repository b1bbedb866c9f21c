"""What must be reached without faults, in bounded time."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tests.simulation.cluster.host import State

if TYPE_CHECKING:
    from tests.simulation.cluster.world import ClusterWorld


class Liveness:
    """All nodes serve, one is the active controller, and every record is acknowledged.

    Every partition has a leader and a full ISR.
    """

    def __init__(self, world: "ClusterWorld") -> None:
        self._world = world

    def missing(self) -> Iterator[str]:
        """Yields what is missing."""
        yield from self._nodes()
        yield from self._partitions()
        yield from self._clients()

    def _nodes(self) -> Iterator[str]:
        hosts = self._world.hosts.values()
        leaders = [host.name for host in hosts if host.node and host.node.quorum.is_leader]
        if len(leaders) != 1:
            yield f"the leaders of the quorum are {leaders}"
        image = self._world.newest_image
        for host in hosts:
            if host.state is not State.UP or host.node is None:
                yield f"{host.name} does not run"
            elif host.node.metadata.image.offset < image.offset:
                yield f"{host.name} does not have the newest metadata"
            elif host.partitions is not None:
                broker = image.brokers.get(host.node_id)
                if broker is None or not broker.active or broker.epoch != host.broker_epoch:
                    yield f"{host.name} is not unfenced"

    def _partitions(self) -> Iterator[str]:
        for topic in self._world.newest_image.topics:
            for index, state in topic.partitions.items():
                name = f"{topic.name}-{index}"
                if state.leader < 0:
                    yield f"{name} has no leader"
                if set(state.isr) != set(state.replicas):
                    yield f"{name} has in sync {state.isr} of {state.replicas}"
                if state.adding or state.removing:
                    yield f"{name} is being reassigned"
                leader = self._world.hosts.get(state.leader)
                partition = leader.partition(topic.topic_id, index) if leader else None
                if partition is None or partition.high_watermark < partition.log.log_end_offset:
                    yield f"{name} has records that are not committed"

    def _clients(self) -> Iterator[str]:
        for producer in self._world.producers:
            if not producer.is_done:
                yield f"{producer.name} has records that are not acknowledged"
