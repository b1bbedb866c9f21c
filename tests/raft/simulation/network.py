"""Requests and responses that are delayed, lost, duplicated and reordered; one-way partitions."""

from collections.abc import Callable
from random import Random
from typing import Any, Protocol

from tests.raft.simulation.clock import Clock

TIMEOUT_MS = 250

REFUSED = "refused"  # no process listens there
LOST = "lost"  # no response in time

Answered = Callable[[Any], None]


class Host(Protocol):
    """What the network needs of a node."""

    @property
    def is_up(self) -> bool: ...

    def receive(self, request: Any, reply: Answered) -> None: ...


class Network:
    """One for all nodes."""

    def __init__(self, clock: Clock, random: Random) -> None:
        self._clock = clock
        self._random = random
        self.hosts: dict[int, Host] = {}
        # (from, to): nothing gets through in this direction.
        self.cut: set[tuple[int, int]] = set()
        self.loss = 0.0
        self.doubling = 0.0
        self.max_delay_ms = 5

    def ask(self, source: int, target: int, request: Any, answered: Answered) -> None:
        """Calls `answered` once: with the response, REFUSED or LOST."""
        waiting = True

        def settle(response: Any) -> None:
            nonlocal waiting
            if waiting:
                waiting = False
                answered(response)

        def reply(response: Any) -> None:
            self._carry(target, source, lambda: settle(response))

        def arrive() -> None:
            host = self.hosts[target]
            if host.is_up:
                host.receive(request, reply)
            else:
                reply(REFUSED)

        self._carry(source, target, arrive)
        if self._random.random() < self.doubling:
            self._carry(source, target, arrive)
        self._clock.later(TIMEOUT_MS, lambda: settle(LOST))

    def _carry(self, source: int, target: int, arrive: Callable[[], None]) -> None:
        if (source, target) in self.cut or self._random.random() < self.loss:
            return
        self._clock.later(self._random.randint(1, self.max_delay_ms), arrive)
