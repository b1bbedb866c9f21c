"""What goes wrong, when, and for how long: as the seed draws it."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from tests.simulation.cluster.hosts import Host, State
from tests.simulation.cluster.processes import by_nobody

if TYPE_CHECKING:
    from tests.simulation.cluster.world import World

DOWN_MS = (50, 400, 2_500)
LASTING_MS = (100, 700, 2_500)
"""How long somebody is away, and how long other trouble lasts: up to one of these, at random."""


LOOK_AGAIN_S = 0.1


class Faults:
    """Strikes until it is told to end; then everything heals."""

    def __init__(self, world: "World") -> None:
        self._world = world
        self._random = world.random
        self._is_over = False
        self._forgetful: tuple[int, int] | None = None
        """The broker whose power was cut last, and the epoch it had."""
        self._kinds: list[tuple[Callable[[], None], int]] = [
            (self._kill, 5),
            (self._kill_in_mid_write, 3),
            (self._stop_cleanly, 3),
            (self._cut_power, 5),
            (self._pause, 3),
            (self._isolate, 3),
            (self._part, 4),
            (self._break_connections, 2),
            (self._slow_network, 2),
            (self._slow_disk, 3),
            (self._kill_everybody, 1),
        ]
        # Every run has its own mixture.
        self._weights = [weight * self._random.choice((0, 1, 1, 3)) for _, weight in self._kinds]
        self._weights[0] += 1

    def strike(self) -> None:
        strike = self._random.choices([kind for kind, _ in self._kinds], self._weights)[0]
        strike()

    def end(self) -> None:
        """No new trouble; who is down comes back, and what was slow or cut is as it should be."""
        self._is_over = True
        self._world.network.heal()
        self._world.network.weather.slow = 0.0
        for host in self._world.hosts.values():
            host.disk.writes_left = None
            host.disk.slow = 0.0
            self._wake(host)
            self._start(host)

    # Processes

    def _kill(self) -> None:
        host = self._random.choice(self._all_hosts())
        if host.is_up and self._may_die(host):
            host.kill()
            self._later(DOWN_MS, self._start, host)

    def _kill_in_mid_write(self) -> None:
        host = self._random.choice(self._all_hosts())
        if host.is_up and self._may_die(host):
            host.disk.writes_left = self._random.randint(1, 6)
            self._later(DOWN_MS, self._start_if_dead, host)

    def _start_if_dead(self, host: Host) -> None:
        """It may have written nothing, and live: then it lives on."""
        host.disk.writes_left = None
        self._start(host)

    def _kill_everybody(self) -> None:
        for host in self._all_hosts():
            if host.is_up and self._may_die(host):
                host.kill()
                self._later(DOWN_MS, self._start, host)

    def _stop_cleanly(self) -> None:
        host = self._random.choice(self._all_hosts())
        if host.state is State.UP and host.node is not None and not self._is_paused(host):
            host.stop()
            self._later(DOWN_MS, self._start, host)

    def _cut_power(self) -> None:
        """Only of one whose records others have: what one disk forgets, another must know."""
        host = self._random.choice(self._all_hosts())
        if host.is_up and self._may_die(host) and self._is_expendable(host):
            broker = self._world.newest_image.brokers.get(host.node_id)
            self._forgetful = (host.node_id, broker.epoch) if broker is not None else None
            for each in self._all_hosts():
                each.disk.writes_left = None
            host.kill(power_cut=True)
            self._later(DOWN_MS, self._start, host)

    def _may_die(self, host: Host) -> bool:
        """Nobody else dies while one may lack records that it lost with its power.

        The controller does not trust a broker that was killed, though that has lost nothing; if
        it can trust nobody it takes the last leader, which may be the one that has. (In Kafka,
        too.) So this one must be in sync again before others die.
        """
        if self._forgetful is None or self._forgetful[0] == host.node_id:
            return True
        node_id, epoch = self._forgetful
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

    def _is_expendable(self, host: Host) -> bool:
        """Whether every partition has somebody else in sync who lives."""
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
            by_nobody(self._world.loop, LOOK_AGAIN_S, self._start, host)

    def _pause(self) -> None:
        host = self._random.choice(self._all_hosts())
        if host.is_up and host.process is not None and not host.process.is_stopped:
            self._world.events.note(host.name, "is paused")
            host.process.stop()
            self._later(LASTING_MS, self._wake, host)

    def _wake(self, host: Host) -> None:
        if self._is_paused(host):
            assert host.process is not None
            self._world.events.note(host.name, "goes on")
            host.process.go_on()

    def _is_paused(self, host: Host) -> bool:
        return host.process is not None and host.process.is_stopped and not host.process.is_dead

    # The network

    def _isolate(self) -> None:
        """A host does not hear the others, or is not heard, or both; clients may reach it still."""
        host = self._random.choice(self._all_hosts())
        others = [each.name for each in self._all_hosts() if each is not host]
        if self._random.random() < 0.3:
            others.append(self._world.clients_process.host)
        kind = self._random.randrange(3)
        ways = []
        if kind != 1:
            ways += [(host.name, other) for other in others]
        if kind != 2:
            ways += [(other, host.name) for other in others]
        self._cut(ways)

    def _part(self) -> None:
        """Two hosts, while others reach both."""
        one, other = self._random.sample(self._all_hosts(), 2)
        ways = [(one.name, other.name)]
        if self._random.random() < 0.5:
            ways.append((other.name, one.name))
        self._cut(ways)

    def _cut(self, ways: list[tuple[str, str]]) -> None:
        network = self._world.network
        self._world.events.note(
            "network", "is cut: " + ", ".join(f"{one} to {other}" for one, other in ways)
        )
        for way in ways:
            network.cut(*way)

        def heal() -> None:
            self._world.events.note("network", f"heals {len(ways)} ways from {ways[0][0]}")
            for way in ways:
                network.heal_way(*way)

        self._later(LASTING_MS, heal)

    def _break_connections(self) -> None:
        self._world.events.note("network", "breaks connections")
        self._world.network.break_connections(self._random.choice((0.1, 0.5, 1.0)))

    def _slow_network(self) -> None:
        weather = self._world.network.weather
        weather.slow, weather.slow_ms = self._random.choice(((0.5, 30), (0.05, 400)))
        self._world.events.note("network", "is slow")

        def recover() -> None:
            weather.slow = 0.0

        self._later(LASTING_MS, recover)

    # Disks

    def _slow_disk(self) -> None:
        disk = (host := self._random.choice(self._all_hosts())).disk
        disk.slow, disk.slow_ms = self._random.choice(((1.0, 40), (0.5, 400), (0.1, 2_000)))
        self._world.events.note(host.name, "has a slow disk")

        def recover() -> None:
            disk.slow = 0.0

        self._later(LASTING_MS, recover)

    def _all_hosts(self) -> list[Host]:
        return list(self._world.hosts.values())

    def _later(self, within_ms: tuple[int, ...], then: Callable[..., None], *args: Host) -> None:
        delay_ms = self._random.randint(20, self._random.choice(within_ms) + 20)

        def do() -> None:
            if not self._is_over:
                then(*args)

        by_nobody(self._world.loop, delay_ms / 1000, do)
