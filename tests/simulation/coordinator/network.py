"""The network between the clients and the broker: messages are slow, lost, or reordered."""

from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Any

from tests.simulation.coordinator.events import Abandoned, Delivered, Responded
from tests.simulation.coordinator.node import Node
from tests.simulation.world.clock import Latency, SimulatedLoop
from tests.simulation.world.disk import Killed
from tests.simulation.world.events import Events
from tests.simulation.world.network import Network

from barnabas.wire.schema import Message

if TYPE_CHECKING:
    from asyncio import Future

    from tests.simulation.coordinator.clients.client import Client


class Unreachable(Exception):  # noqa: N818 - an expected fault
    """The connection broke, or the response timed out: the request may have been handled."""


FAST_MS = 5

CLIENTS, BROKER = "clients", "broker"


@dataclass(slots=True, eq=False)
class SentRequest:
    """A request, and its response if there is one."""

    number: int
    client: "Client"
    request: Any
    version: int
    sent_ms: int
    may_arrive_late: bool
    """Whether it may arrive after its client has abandoned it."""
    response_future: "Future[Any]"
    delivered_ms: int | None = None
    responded_ms: int | None = None
    response: Any = None
    incarnation: int = field(default=0)

    @property
    def is_pending(self) -> bool:
        return not self.response_future.done()


class ClientNetwork(Network):
    """Requests of clients to the broker. A request that is sent later may arrive earlier."""

    def __init__(self, node: Node, loop: SimulatedLoop, events: Events, random: Random) -> None:
        super().__init__(loop, random, Latency(min_ms=1, fast_ms=FAST_MS))
        self.pending: dict[int, SentRequest] = {}
        """The requests that the broker has not responded to, by number."""
        self._node = node
        self._events = events
        self.count = 0

    async def send_request(
        self,
        client: "Client",
        request: Message,
        version: int,
        timeout_ms: int,
        may_arrive_late: bool,
    ) -> Any:
        """Returns the response. Raises Unreachable if there is none."""
        self.count += 1
        sent = SentRequest(
            self.count,
            client,
            _over_the_wire(request, version),
            version,
            self.loop.now_ms,
            may_arrive_late,
            self.loop.create_future(),
        )
        if not self.deliver(CLIENTS, BROKER, self._on_request, sent):
            self._on_lost(sent)
        timeout = self.loop.call_later(timeout_ms / 1000, self._fail, sent)
        try:
            return await sent.response_future
        finally:
            timeout.cancel()

    def on_broker_killed(self) -> None:
        """The clients notice it sooner or later."""
        pending, self.pending = self.pending, {}
        for sent in pending.values():
            self._after(self.random.randint(1, 500), self._fail, sent)

    def _on_request(self, sent: SentRequest) -> None:
        if not sent.is_pending and not sent.may_arrive_late and sent.client.is_alive:
            return  # its connection was closed before the broker read it
        if not self._node.is_up:
            self._after(self.random.randint(10, 300), self._fail, sent)
            return
        sent.delivered_ms = self.loop.now_ms
        sent.incarnation = self._node.incarnation
        self.pending[sent.number] = sent
        self._events.record(Delivered(sent))
        try:
            self._node.handle(
                sent.request,
                sent.version,
                sent.client.name,
                lambda response: self._respond(sent, response),
            )
        except Killed:
            return  # the broker was killed while it handled this request

    def _respond(self, sent: SentRequest, response: Message | None) -> None:
        assert response is not None
        del self.pending[sent.number]
        sent.response = _over_the_wire(response, sent.version)
        sent.responded_ms = self.loop.now_ms
        self._events.record(Responded(sent))
        if not self.deliver(BROKER, CLIENTS, self._complete, sent):
            self._on_lost(sent)

    def _on_lost(self, sent: SentRequest) -> None:
        """The client notices the loss when the connection breaks, or when the request times out."""
        if self.random.random() < 0.5:
            self._after(self.random.randint(1, 500), self._fail, sent)

    def _complete(self, sent: SentRequest) -> None:
        if sent.is_pending:
            sent.response_future.set_result(sent.response)

    def _fail(self, sent: SentRequest) -> None:
        if sent.is_pending:
            self._events.record(Abandoned(sent))
            sent.response_future.set_exception(Unreachable())

    def _after(self, delay_ms: int, step: Any, sent: SentRequest) -> None:
        self.loop.call_later(delay_ms / 1000, step, sent)


def _over_the_wire(message: Message, version: int) -> Message:
    """Returns the message as the other side reads it."""
    frame = bytearray(message.write(version))
    read, _ = type(message).read(memoryview(frame), version)
    return read
