"""Faults of hosts, disks and the network, with the limits that every run keeps.

`random_faults.py` draws one after the other, `scenarios.py` has sequences of them.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from tests.simulation.cluster.host import Host, State
from tests.simulation.cluster.layout import CLIENTS_PORT, CONTROLLERS_PORT
from tests.simulation.world.connections import RequestKind

from barnabas.log.segments.log_files import CLEANED
from barnabas.metadata.image import MetadataImage
from barnabas.wire.apis import ApiKey

if TYPE_CHECKING:
    from tests.simulation.cluster.world import ClusterWorld

Link = tuple[str, str]
"""The names of two hosts: messages from the first to the second."""

DOWN_MS = (50, 400, 2_500)
LASTING_MS = (100, 700, 2_500)
"""How long a host is down, and how long other faults last: up to one of these, at random."""

CHECK_AGAIN_S = 0.1


METADATA_FETCH = RequestKind(CONTROLLERS_PORT, ApiKey.FETCH)
REPLICA_FETCH = RequestKind(CLIENTS_PORT, ApiKey.FETCH)
ALTER_PARTITION = RequestKind(CONTROLLERS_PORT, ApiKey.ALTER_PARTITION)


class Faults:
    """Makes hosts, disks and links fail until `end`, which ends all faults."""

    def __init__(self, world: "ClusterWorld") -> None:
        self.is_over = False
        self._world = world
        self._random = world.random
        self._lost_power: tuple[int, int] | None = None
        """The broker that lost power last, and the epoch that it had."""

    @property
    def hosts(self) -> list[Host]:
        return list(self._world.hosts.values())

    def end(self) -> None:
        """Ends all faults, and starts the hosts that are down."""
        self.is_over = True
        for host in self.hosts:
            host.disk.disarm()  # what arrives now must not kill it
        self._world.network.heal_all()
        self._world.network.latency.slow_chance = 0.0
        for host in self.hosts:
            host.disk.latency.slow_chance = 0.0
            host.disk.is_full = False
            self.resume(host)
            self.start(host)

    def later(self, within_ms: Sequence[int], then: Callable[..., object], *args: object) -> None:
        """Calls it after a random time, unless the faults are over by then."""
        delay_ms = self._random.randint(20, self._random.choice(within_ms) + 20)

        def call() -> None:
            if not self.is_over:
                then(*args)

        self._world.loop.call_without_process(delay_ms / 1000, call)

    # Processes

    def kill(self, host: Host) -> bool:
        """Returns whether it was killed: see `may_die`."""
        if not host.is_up or not self.may_die(host):
            return False
        host.kill()
        return True

    def kill_while_writing(self, host: Host, writes: int) -> bool:
        """Kills it at one of its next changes of a file."""
        if not host.is_up or not self.may_die(host):
            return False
        host.disk.writes_left = writes
        return True

    def kill_while_cleaning(self, host: Host, writes: int) -> bool:
        """Kills it at one of the changes that put a cleaned segment in place."""
        if not host.is_up or not self.may_die(host):
            return False
        host.disk.kill_after_rename(CLEANED, writes)
        return True

    def lose_power(self, host: Host) -> bool:
        """Only of a host whose committed records are on other disks too."""
        if not host.is_up or not self.may_die(host) or not self._is_replicated(host):
            return False
        broker = self._image.brokers.get(host.node_id)
        self._lost_power = (host.node_id, broker.epoch) if broker is not None else None
        for other in self.hosts:
            other.disk.disarm()
        host.kill(power_loss=True)
        return True

    def stop_cleanly(self, host: Host) -> bool:
        if host.state is not State.UP or host.node is None or self._is_paused(host):
            return False
        host.stop()
        return True

    def start(self, host: Host) -> None:
        """Starts it if it is down. A host that must be killed at a later write continues."""
        host.disk.disarm()
        if host.state is State.DOWN:
            host.start()
        elif host.state is State.STOPPING:
            self._world.loop.call_without_process(CHECK_AGAIN_S, self.start, host)

    def pause(self, host: Host) -> bool:
        if not host.is_up or host.process is None or host.process.is_paused:
            return False
        self._world.events.note(host.name, "is paused")
        host.process.pause()
        return True

    def resume(self, host: Host) -> None:
        if self._is_paused(host):
            assert host.process is not None
            self._world.events.note(host.name, "is resumed")
            host.process.resume()

    def may_die(self, host: Host) -> bool:
        """Returns whether the host may be killed.

        No host is killed while another may lack records that it lost with its power. The
        controller does not consider a killed broker eligible to lead, though it has lost nothing;
        without an eligible replica it elects the last known leader, which may be the one that lost
        records (as in Kafka). So that broker must be in sync again before others are killed.
        """
        if self._lost_power is None or self._lost_power[0] == host.node_id:
            return True
        node_id, epoch = self._lost_power
        broker = self._image.brokers.get(node_id)
        return (
            broker is not None
            and broker.epoch != epoch
            and all(
                node_id in state.isr
                for topic in self._image.topics
                for state in topic.partitions.values()
                if node_id in state.replicas
            )
        )

    def _is_replicated(self, host: Host) -> bool:
        """Returns whether another running broker is in sync in every partition of the host."""
        hosts, image = self._world.hosts, self._image
        return all(
            any(
                other != host.node_id
                and hosts[other].is_up
                and hosts[other].broker_epoch == image.brokers[other].epoch
                for other in state.isr
            )
            for topic in image.topics
            for state in topic.partitions.values()
            if host.node_id in state.replicas
        )

    def _is_paused(self, host: Host) -> bool:
        return host.process is not None and host.process.is_paused and not host.process.is_killed

    @property
    def _image(self) -> MetadataImage:
        return self._world.newest_image

    # The network

    def links_of(self, host: Host, others: Sequence[Host]) -> list[Link]:
        """Returns the links between a host and others, in both directions."""
        names = [other.name for other in others if other is not host]
        return [(host.name, name) for name in names] + [(name, host.name) for name in names]

    def cut(self, links: Sequence[Link]) -> None:
        for link in links:
            self._world.network.cut(*link)
        self._note_links("cut", links)

    def heal(self, links: Sequence[Link]) -> None:
        for link in links:
            self._world.network.heal(*link)
        self._note_links("healed", links)

    def _note_links(self, change: str, links: Sequence[Link]) -> None:
        if links:
            names = ", ".join(f"{source} to {target}" for source, target in links)
            self._world.events.note("network", f"links are {change}: {names}")

    def hold(self, host: Host, requests: RequestKind) -> None:
        """Requests of this kind leave the host, but do not arrive until they are released."""
        self._world.events.note(host.name, f"has requests that do not arrive: {_name(requests)}")
        self._world.network.hold(host.name, requests)

    def release(self, host: Host, requests: RequestKind) -> None:
        self._world.events.note(host.name, f"has requests that arrive again: {_name(requests)}")
        self._world.network.release(host.name, requests)

    def is_holding(self, host: Host, requests: RequestKind) -> bool:
        """Returns whether such a request was sent and has not arrived."""
        return self._world.network.has_held(host.name, requests)

    def break_connections(self, chance: float) -> None:
        self._world.events.note("network", "connections break")
        self._world.network.break_connections(chance)

    def slow_network(self, chance: float, slow_ms: float) -> None:
        latency = self._world.network.latency
        latency.slow_chance, latency.slow_ms = chance, slow_ms
        self._world.events.note("network", "is slow")

    def end_slow_network(self) -> None:
        self._world.network.latency.slow_chance = 0.0

    # Disks

    def slow_disk(self, host: Host, chance: float, slow_ms: float) -> None:
        latency = host.disk.latency
        latency.slow_chance, latency.slow_ms = chance, slow_ms
        self._world.events.note(host.name, "has a slow disk")

    def fill_disk(self, host: Host) -> None:
        """Files of the host can neither grow nor be created."""
        host.disk.is_full = True
        self._world.events.note(host.name, "has a full disk")

    def free_disk(self, host: Host) -> None:
        host.disk.is_full = False
        self._world.events.note(host.name, "has space on its disk again")

    def end_slow_disk(self, host: Host) -> None:
        host.disk.latency.slow_chance = 0.0


def _name(requests: RequestKind) -> str:
    return f"{ApiKey(requests.api_key).name} to port {requests.port}"
