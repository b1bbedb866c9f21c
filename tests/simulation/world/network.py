"""The network between hosts: delays, losses, duplicates, and partitions in one direction or both.

`RequestNetwork` delivers requests and responses as messages, for cores without I/O.
`tests.simulation.world.connections` has connections between hosts, for whole nodes.
"""

from collections.abc import Callable, Hashable
from random import Random
from typing import Any, Protocol

from tests.simulation.world.clock import Latency, SimulatedLoop

ResponseCallback = Callable[[Any], None]


class Network:
    """The links between hosts, each in one direction."""

    def __init__(self, loop: SimulatedLoop, random: Random, latency: Latency) -> None:
        self.loop = loop
        self.random = random
        self.latency = latency
        self.loss = 0.0
        """The chance of a message to be lost."""
        self.duplication = 0.0
        """The chance of a message to arrive twice."""
        self._cut: set[tuple[Hashable, Hashable]] = set()

    def cut(self, source: Hashable, target: Hashable) -> None:
        """No message gets from one host to the other."""
        self._cut.add((source, target))

    def is_cut(self, source: Hashable, target: Hashable) -> bool:
        return (source, target) in self._cut

    def heal(self, source: Hashable, target: Hashable) -> None:
        self._cut.discard((source, target))

    def heal_all(self) -> None:
        self._cut.clear()

    def deliver(
        self, source: Hashable, target: Hashable, arrive: Callable[..., object], *args: Any
    ) -> bool:
        """Calls `arrive` after a delay. Returns False if the message is lost.

        Messages are not ordered: one that is sent later may arrive earlier.
        """
        if self.is_cut(source, target) or self.random.random() < self.loss:
            return False
        copies = 2 if self.random.random() < self.duplication else 1
        for _ in range(copies):
            self.loop.call_without_process(self.latency.draw_s(self.random), arrive, *args)
        return True


class RequestHandler(Protocol):
    """A host that handles requests."""

    @property
    def is_up(self) -> bool: ...

    def on_request(self, request: Any, respond: ResponseCallback) -> None: ...


class RequestNetwork(Network):
    """Delivers requests to hosts by their id, and the responses back."""

    def __init__(self, loop: SimulatedLoop, random: Random, latency: Latency) -> None:
        super().__init__(loop, random, latency)
        self.hosts: dict[Hashable, RequestHandler] = {}

    def send(
        self,
        source: Hashable,
        target: Hashable,
        request: Any,
        timeout_ms: int,
        on_response: ResponseCallback,
    ) -> None:
        """Calls `on_response` once, with the response or with an OSError."""
        is_pending = True

        def complete(response: Any) -> None:
            nonlocal is_pending
            if is_pending:
                is_pending = False
                on_response(response)

        def respond(response: Any) -> None:
            self.deliver(target, source, complete, response)

        def arrive() -> None:
            host = self.hosts[target]
            if host.is_up:
                host.on_request(request, respond)
            else:
                respond(ConnectionRefusedError(f"{target} is not running"))

        self.deliver(source, target, arrive)
        timeout = TimeoutError(f"{target}: no response")
        self.loop.call_without_process(timeout_ms / 1000, complete, timeout)
