"""The faults of a run, drawn from the seed."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from tests.simulation.cluster.host import Host, State

if TYPE_CHECKING:
    from tests.simulation.cluster.world import ClusterWorld

DOWN_MS = (50, 400, 2_500)
LASTING_MS = (100, 700, 2_500)
"""How long a host is down, and how long other faults last: up to one of these, at random."""


CHECK_AGAIN_S = 0.1


class Faults:
    """Injects faults until `end`, which ends all of them."""

    def __init__(self, world: "ClusterWorld") -> None:
        self._world = world
        self._random = world.random
        self._is_over = False
        self._lost_power: tuple[int, int] | None = None
        """The broker that lost power last, and the epoch that it had."""
        self._kinds: list[tuple[Callable[[], None], int]] = [
            (self._kill, 5),
            (self._kill_while_writing, 3),
            (self._stop_cleanly, 3),
            (self._lose_power, 5),
            (self._pause, 3),
            (self._isolate, 3),
            (self._partition, 4),
            (self._break_connections, 2),
            (self._slow_network, 2),
            (self._slow_disk, 3),
            (self._kill_all, 1),
        ]
        # Every run has other weights.
        self._weights = [weight * self._random.choice((0, 1, 1, 3)) for _, weight in self._kinds]
        self._weights[0] += 1

    def inject(self) -> None:
        inject = self._random.choices([kind for kind, _ in self._kinds], self._weights)[0]
        inject()

    def end(self) -> None:
        """Ends all faults, and starts the hosts that are down."""
        self._is_over = True
        self._world.network.heal_all()
        self._world.network.latency.slow_chance = 0.0
        for host in self._world.hosts.values():
            host.disk.writes_left = None
            host.disk.latency.slow_chance = 0.0
            self._resume(host)
            self._start(host)

    # Processes

    def _kill(self) -> None:
        host = self._random.choice(self._all_hosts())
        if host.is_up and self._may_die(host):
            host.kill()
            self._later(DOWN_MS, self._start, host)

    def _kill_while_writing(self) -> None:
        host = self._random.choice(self._all_hosts())
        if host.is_up and self._may_die(host):
            host.disk.writes_left = self._random.randint(1, 6)
            self._later(DOWN_MS, self._start_if_dead, host)

    def _start_if_dead(self, host: Host) -> None:
        """If it has written too little to be killed, it continues."""
        host.disk.writes_left = None
        self._start(host)

    def _kill_all(self) -> None:
        for host in self._all_hosts():
            if host.is_up and self._may_die(host):
                host.kill()
                self._later(DOWN_MS, self._start, host)

    def _stop_cleanly(self) -> None:
        host = self._random.choice(self._all_hosts())
        if host.state is State.UP and host.node is not None and not self._is_paused(host):
            host.stop()
            self._later(DOWN_MS, self._start, host)

    def _lose_power(self) -> None:
        """Only of a host whose committed records are on other disks too."""
        host = self._random.choice(self._all_hosts())
        if host.is_up and self._may_die(host) and self._is_replicated(host):
            broker = self._world.newest_image.brokers.get(host.node_id)
            self._lost_power = (host.node_id, broker.epoch) if broker is not None else None
            for other in self._all_hosts():
                other.disk.writes_left = None
            host.kill(power_loss=True)
            self._later(DOWN_MS, self._start, host)

    def _may_die(self, host: Host) -> bool:
        """Returns whether the host may be killed.

        No host is killed while another may lack records that it lost with its power. The
        controller does not consider a killed broker eligible to lead, though it has lost nothing;
        without an eligible replica it elects the last known leader, which may be the one that lost
        records (as in Kafka). So that broker must be in sync again before others are killed.
        """
        if self._lost_power is None or self._lost_power[0] == host.node_id:
            return True
        node_id, epoch = self._lost_power
        image = self._world.newest_image
        broker = image.brokers.get(node_id)
        return (
            broker is not None
            and broker.epoch != epoch
            and all(
                node_id in state.isr
                for topic in image.topics
                for state in topic.partitions.values()
                if node_id in state.replicas
            )
        )

    def _is_replicated(self, host: Host) -> bool:
        """Returns whether another running broker is in sync in every partition of the host."""
        hosts = self._world.hosts
        image = self._world.newest_image
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

    def _start(self, host: Host) -> None:
        if host.state is State.DOWN:
            host.start()
        elif host.state is State.STOPPING:
            self._world.loop.call_without_process(CHECK_AGAIN_S, self._start, host)

    def _pause(self) -> None:
        host = self._random.choice(self._all_hosts())
        if host.is_up and host.process is not None and not host.process.is_paused:
            self._world.events.note(host.name, "is paused")
            host.process.pause()
            self._later(LASTING_MS, self._resume, host)

    def _resume(self, host: Host) -> None:
        if self._is_paused(host):
            assert host.process is not None
            self._world.events.note(host.name, "is resumed")
            host.process.resume()

    def _is_paused(self, host: Host) -> bool:
        return host.process is not None and host.process.is_paused and not host.process.is_killed

    # The network

    def _isolate(self) -> None:
        """Cuts the links of a host in one direction or in both; clients may still reach it."""
        host = self._random.choice(self._all_hosts())
        others = [other.name for other in self._all_hosts() if other is not host]
        if self._random.random() < 0.3:
            others.append(self._world.clients_process.host)
        kind = self._random.randrange(3)
        links = []
        if kind != 1:
            links += [(host.name, other) for other in others]
        if kind != 2:
            links += [(other, host.name) for other in others]
        self._cut(links)

    def _partition(self) -> None:
        """Cuts the links between two hosts, while others reach both."""
        one, other = self._random.sample(self._all_hosts(), 2)
        links = [(one.name, other.name)]
        if self._random.random() < 0.5:
            links.append((other.name, one.name))
        self._cut(links)

    def _cut(self, links: list[tuple[str, str]]) -> None:
        network = self._world.network
        self._world.events.note(
            "network", "links are cut: " + ", ".join(f"{one} to {other}" for one, other in links)
        )
        for link in links:
            network.cut(*link)

        def heal() -> None:
            self._world.events.note("network", f"{len(links)} links of {links[0][0]} are healed")
            for link in links:
                network.heal(*link)

        self._later(LASTING_MS, heal)

    def _break_connections(self) -> None:
        self._world.events.note("network", "connections break")
        self._world.network.break_connections(self._random.choice((0.1, 0.5, 1.0)))

    def _slow_network(self) -> None:
        latency = self._world.network.latency
        latency.slow_chance, latency.slow_ms = self._random.choice(((0.5, 30), (0.05, 400)))
        self._world.events.note("network", "is slow")

        def recover() -> None:
            latency.slow_chance = 0.0

        self._later(LASTING_MS, recover)

    # Disks

    def _slow_disk(self) -> None:
        host = self._random.choice(self._all_hosts())
        latency = host.disk.latency
        latency.slow_chance, latency.slow_ms = self._random.choice(
            ((1.0, 40), (0.5, 400), (0.1, 2_000))
        )
        self._world.events.note(host.name, "has a slow disk")

        def recover() -> None:
            latency.slow_chance = 0.0

        self._later(LASTING_MS, recover)

    def _all_hosts(self) -> list[Host]:
        return list(self._world.hosts.values())

    def _later(self, within_ms: tuple[int, ...], then: Callable[..., None], *args: Host) -> None:
        delay_ms = self._random.randint(20, self._random.choice(within_ms) + 20)

        def do() -> None:
            if not self._is_over:
                then(*args)

        self._world.loop.call_without_process(delay_ms / 1000, do)
