"""One fault after the other, each of a random kind, for random hosts, for a random time."""

from collections.abc import Callable
from random import Random

from tests.simulation.cluster.faults import DOWN_MS, LASTING_MS, Faults
from tests.simulation.cluster.host import Host

CLIENTS = "clients"


class RandomFaults:
    """Draws faults. Every run has other weights."""

    def __init__(self, faults: Faults, random: Random) -> None:
        self._faults = faults
        self._random = random
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
        self._weights = [weight * random.choice((0, 1, 1, 3)) for _, weight in self._kinds]
        self._weights[0] += 1

    def inject(self) -> None:
        inject = self._random.choices([kind for kind, _ in self._kinds], self._weights)[0]
        inject()

    def _kill(self) -> None:
        self._kill_one(self._any_host())

    def _kill_all(self) -> None:
        for host in self._faults.hosts:
            self._kill_one(host)

    def _kill_one(self, host: Host) -> None:
        if self._faults.kill(host):
            self._faults.later(DOWN_MS, self._faults.start, host)

    def _kill_while_writing(self) -> None:
        host = self._any_host()
        if self._faults.kill_while_writing(host, self._random.randint(1, 6)):
            self._faults.later(DOWN_MS, self._faults.start, host)

    def _stop_cleanly(self) -> None:
        host = self._any_host()
        if self._faults.stop_cleanly(host):
            self._faults.later(DOWN_MS, self._faults.start, host)

    def _lose_power(self) -> None:
        host = self._any_host()
        if self._faults.lose_power(host):
            self._faults.later(DOWN_MS, self._faults.start, host)

    def _pause(self) -> None:
        host = self._any_host()
        if self._faults.pause(host):
            self._faults.later(LASTING_MS, self._faults.resume, host)

    def _isolate(self) -> None:
        """Cuts the links of a host in one direction or in both; clients may still reach it."""
        host = self._any_host()
        others = [other.name for other in self._faults.hosts if other is not host]
        if self._random.random() < 0.3:
            others.append(CLIENTS)
        kind = self._random.randrange(3)
        links = []
        if kind != 1:
            links += [(host.name, other) for other in others]
        if kind != 2:
            links += [(other, host.name) for other in others]
        self._faults.cut(links)
        self._faults.later(LASTING_MS, self._faults.heal, links)

    def _partition(self) -> None:
        """Cuts the links between two hosts, while others reach both."""
        one, other = self._random.sample(self._faults.hosts, 2)
        links = [(one.name, other.name)]
        if self._random.random() < 0.5:
            links.append((other.name, one.name))
        self._faults.cut(links)
        self._faults.later(LASTING_MS, self._faults.heal, links)

    def _break_connections(self) -> None:
        self._faults.break_connections(self._random.choice((0.1, 0.5, 1.0)))

    def _slow_network(self) -> None:
        self._faults.slow_network(*self._random.choice(((0.5, 30), (0.05, 400))))
        self._faults.later(LASTING_MS, self._faults.end_slow_network)

    def _slow_disk(self) -> None:
        host = self._any_host()
        self._faults.slow_disk(host, *self._random.choice(((1.0, 40), (0.5, 400), (0.1, 2_000))))
        self._faults.later(LASTING_MS, self._faults.end_slow_disk, host)

    def _any_host(self) -> Host:
        return self._random.choice(self._faults.hosts)
