"""What lies between clients and the node: requests and answers take time, or never arrive."""

from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Any

from tests.simulation.clock import SimulatedLoop
from tests.simulation.events import Answered, Delivered, Events, GivenUp
from tests.simulation.node import Killed, Node

from barnabas.wire.schema import Message

if TYPE_CHECKING:
    from asyncio import Future

    from tests.simulation.clients.client import Client


class Unreachable(Exception):  # noqa: N818 - not an error, the weather
    """The connection broke, or no answer came in time: whether it was done, nobody knows."""


@dataclass(slots=True)
class Weather:
    """How the network behaves for the moment."""

    lost: float = 0.0
    """The chance of a request, and of an answer, to be lost."""
    slow: float = 0.0
    """The chance of either to take long."""
    quick_ms: int = 5
    slow_ms: int = 50

    def delay_ms(self, random: Random) -> int:
        return random.randint(1, self.slow_ms if random.random() < self.slow else self.quick_ms)


FINE = Weather()


@dataclass(slots=True, eq=False)
class Exchange:
    """A request and what becomes of it."""

    number: int
    client: "Client"
    request: Any
    version: int
    sent_ms: int
    haunts: bool
    """Whether it may arrive even after its client has given it up."""
    heard: "Future[Any]"
    delivered_ms: int | None = None
    answered_ms: int | None = None
    response: Any = None
    incarnation: int = field(default=0)

    @property
    def is_waited_for(self) -> bool:
        return not self.heard.done()


class Network:
    """Each request takes its own way: what is sent later may arrive sooner."""

    def __init__(self, node: Node, loop: SimulatedLoop, events: Events, random: Random) -> None:
        self.weather = FINE
        self.unanswered: dict[int, Exchange] = {}
        """By number what the node has and has not answered."""
        self._node = node
        self._loop = loop
        self._events = events
        self._random = random
        self.count = 0

    async def ask(
        self, client: "Client", request: Message, version: int, timeout_ms: int, haunts: bool
    ) -> Any:
        """The answer, or Unreachable."""
        self.count += 1
        exchange = Exchange(
            self.count,
            client,
            _over_the_wire(request, version),
            version,
            self._loop.now_ms,
            haunts,
            self._loop.create_future(),
        )
        if not self._is_lost(exchange):
            self._after(self.weather.delay_ms(self._random), self._deliver, exchange)
        timeout = self._loop.call_later(timeout_ms / 1000, self._fail, exchange)
        try:
            return await exchange.heard
        finally:
            timeout.cancel()

    def node_died(self) -> None:
        """Whoever waits for an answer finds out, sooner or later."""
        unanswered, self.unanswered = self.unanswered, {}
        for exchange in unanswered.values():
            self._after(self._random.randint(1, 500), self._fail, exchange)

    def _deliver(self, exchange: Exchange) -> None:
        if not exchange.is_waited_for and not exchange.haunts and exchange.client.is_alive:
            return  # its connection was closed before the node had read it
        if not self._node.is_up:
            self._after(self._random.randint(10, 300), self._fail, exchange)
            return
        exchange.delivered_ms = self._loop.now_ms
        exchange.incarnation = self._node.incarnation
        self.unanswered[exchange.number] = exchange
        self._events.tell(Delivered(exchange))
        try:
            self._node.handle(
                exchange.request,
                exchange.version,
                exchange.client.name,
                lambda response: self._answer(exchange, response),
            )
        except Killed:
            return  # and this was what it was at

    def _answer(self, exchange: Exchange, response: Message | None) -> None:
        assert response is not None
        del self.unanswered[exchange.number]
        exchange.response = _over_the_wire(response, exchange.version)
        exchange.answered_ms = self._loop.now_ms
        self._events.tell(Answered(exchange))
        if not self._is_lost(exchange):
            self._after(self.weather.delay_ms(self._random), self._hear, exchange)

    def _is_lost(self, exchange: Exchange) -> bool:
        """A loss is noticed when the connection breaks, or when the client has waited enough."""
        if self._random.random() >= self.weather.lost:
            return False
        if self._random.random() < 0.5:
            self._after(self._random.randint(1, 500), self._fail, exchange)
        return True

    def _hear(self, exchange: Exchange) -> None:
        if exchange.is_waited_for:
            exchange.heard.set_result(exchange.response)

    def _fail(self, exchange: Exchange) -> None:
        if exchange.is_waited_for:
            self._events.tell(GivenUp(exchange))
            exchange.heard.set_exception(Unreachable())

    def _after(self, delay_ms: int, step: Any, exchange: Exchange) -> None:
        self._loop.call_later(delay_ms / 1000, step, exchange)


def _over_the_wire(message: Message, version: int) -> Message:
    """As the other side reads it."""
    frame = bytearray(message.write(version))
    read, _ = type(message).read(memoryview(frame), version)
    return read
