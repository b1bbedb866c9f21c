"""The network between hosts: connections that are slow, break, or are cut in one direction.

It stands in where a real node has sockets. A connection carries frames in order, each way by its
own `_Pipe`. What is sent into a cut waits there, as the kernel would send it again, and arrives
when the cut has healed, if both ends still have the connection by then. The kernel of a killed
process closes its connections; a host that lost its power says nothing until it is back.
"""

import errno
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Protocol

from tests.simulation.cluster.processes import (
    NOBODY,
    Process,
    ProcessLoop,
    by_nobody,
    current_process,
)

from barnabas.wire.errors import ProtocolViolation

Address = tuple[str, int]

TIMER_RESOLUTION_S = 2e-6
"""By how much a timer may be early."""


@dataclass(slots=True)
class Weather:
    """How long things take."""

    quick_ms: float = 2.0
    slow: float = 0.0
    """The chance of a frame to take long."""
    slow_ms: float = 200.0

    def delay_s(self, random: Random) -> float:
        longest_ms = self.slow_ms if random.random() < self.slow else self.quick_ms
        return (0.2 + random.random() * longest_ms) / 1000


class Door(Protocol):
    """Who listens at an address."""

    process: Process

    def accept(self, end: "End") -> None:
        """Somebody has connected. A step of the process."""


class Network:
    """All hosts, who listens where, and every connection."""

    def __init__(self, loop: ProcessLoop, random: Random) -> None:
        self.loop = loop
        self.random = random
        self.weather = Weather()
        self.doors: dict[Address, Door] = {}
        self.frames = 0
        self._cuts: set[tuple[str, str]] = set()
        self._off: set[str] = set()
        self._ends: dict[End, None] = {}
        self._dialling: dict[Dial, None] = {}
        self._stalled: dict[_Pipe, None] = {}

    # What a process may do

    def dial(
        self,
        _: object,
        host: str,
        port: int,
        _prepare: object,
        connected: Callable[[Any], None],
        failed: Callable[[OSError], None],
    ) -> "Dial":
        """Stands in for `barnabas.net.connect_attempt.ConnectAttempt`."""
        return Dial(self, current_process(), (host, port), connected, failed)

    def link(
        self,
        end: "End",
        *_: object,
        on_frame: Callable[[memoryview], None],
        on_error: Callable[[OSError], None],
    ) -> "End":
        """Stands in for `barnabas.net.frame_transport.FrameTransport`."""
        end.received, end.broken = on_frame, on_error
        return end

    async def hold_connection(self, host: str, port: int) -> None:
        """In the place of `barnabas.node.environment.hold_connection`."""
        broken = self.loop.create_future()

        def tell(failure: OSError | None) -> None:
            if not broken.done():
                if failure is None:
                    broken.set_result(None)
                else:
                    broken.set_exception(failure)

        def connected(end: End) -> None:
            end.received, end.broken = lambda _: None, lambda _: tell(None)
            broken.add_done_callback(lambda _: end.close())
            timeout.cancel()

        dial = self.dial(None, host, port, None, connected, tell)
        timeout = self.loop.call_later(1.0, tell, TimeoutError(errno.ETIMEDOUT, "no answer"))
        try:
            await broken
        finally:
            dial.cancel()

    def listen(self, address: Address, door: Door) -> None:
        if address in self.doors:
            raise OSError(errno.EADDRINUSE, f"{address} is taken")
        self.doors[address] = door

    def unlisten(self, door: Door) -> None:
        for address in [each for each, other in self.doors.items() if other is door]:
            del self.doors[address]

    # What happens to hosts and to the ways between them

    def is_cut(self, source: str, target: str) -> bool:
        return (source, target) in self._cuts

    def is_off(self, host: str) -> bool:
        return host in self._off

    def cut(self, source: str, target: str) -> None:
        """Nothing gets from one to the other."""
        self._cuts.add((source, target))

    def heal(self) -> None:
        self._cuts.clear()
        self._try_again()

    def heal_way(self, source: str, target: str) -> None:
        self._cuts.discard((source, target))
        self._try_again()

    def break_connections(self, chance: float) -> None:
        """Some connections are reset, as seen from both ends."""
        for end in list(self._ends):
            if end.is_dialler and self.random.random() < chance:
                end.break_off()
                end.other.break_off()

    def process_died(self, process: Process, *, power_cut: bool) -> None:
        for address in [each for each, door in self.doors.items() if door.process is process]:
            del self.doors[address]
        if power_cut:
            self._off.add(process.host)
        for end in [each for each in self._ends if each.process is process]:
            end.die(silently=power_cut)
        for dial in [each for each in self._dialling if each.process is process]:
            dial.cancel()

    def power_on(self, host: str) -> None:
        """The kernel is back, and knows nothing of the connections from before."""
        self._off.discard(host)
        for end in [each for each in self._ends if each.process.host == host]:
            if end.process.is_dead:
                end.die(silently=False)
        self._try_again()

    def _try_again(self) -> None:
        stalled, self._stalled = self._stalled, {}
        for pipe in stalled:
            pipe.pump()
        for dial in list(self._dialling):
            dial.try_later()

    # Between the parts of this network

    def connect(self, dialler: Process, door: Door) -> "End":
        here, there = End(self, dialler, is_dialler=True), End(self, door.process)
        here.join(there)
        self._ends[here] = self._ends[there] = None
        door.process.submit(door.accept, there)
        return here

    def dialling(self, dial: "Dial") -> None:
        self._dialling[dial] = None

    def forget_dial(self, dial: "Dial") -> None:
        self._dialling.pop(dial, None)

    def stall(self, pipe: "_Pipe") -> None:
        """It goes on when something has healed, also if its source is gone by then."""
        self._stalled[pipe] = None

    def forget(self, end: "End") -> None:
        self._ends.pop(end, None)


class Dial:
    """One attempt to connect. While no answer can come, it waits; who dials gives up in time."""

    def __init__(
        self,
        network: Network,
        process: Process,
        address: Address,
        connected: Callable[[Any], None],
        failed: Callable[[OSError], None],
    ) -> None:
        self.process = process
        self._network = network
        self._address = address
        self._connected = connected
        self._failed = failed
        self._has_tried = False
        self._is_cancelled = False
        network.dialling(self)
        self.try_later()

    def cancel(self) -> None:
        """Nobody wants the connection any more."""
        self._is_cancelled = True
        self._network.forget_dial(self)

    def try_later(self) -> None:
        network = self._network
        by_nobody(network.loop, network.weather.delay_s(network.random), self._try)

    def _try(self) -> None:
        network, (host, _) = self._network, self._address
        ways = network.is_cut(self.process.host, host) or network.is_cut(host, self.process.host)
        if self._has_tried or self._is_cancelled or ways or network.is_off(host):
            return
        self._has_tried = True
        network.forget_dial(self)
        door = network.doors.get(self._address)
        if door is None:
            refused = ConnectionRefusedError(errno.ECONNREFUSED, "nobody listens there")
            self.process.submit(self._fail, refused)
        else:
            self.process.submit(self._connect, network.connect(self.process, door))

    def _fail(self, refused: OSError) -> None:
        if not self._is_cancelled:
            self._failed(refused)

    def _connect(self, end: "End") -> None:
        if self._is_cancelled:
            end.close()
        else:
            self._connected(end)


class End:
    """One end of a connection, in the hands of a process."""

    def __init__(self, network: Network, process: Process, *, is_dialler: bool = False) -> None:
        self.process = process
        self.is_dialler = is_dialler
        self.is_closed = False
        self.received: Callable[[memoryview], None] = lambda _: None
        self.broken: Callable[[OSError], None] = lambda _: None
        self._network = network

    def join(self, other: "End") -> None:
        self.other = other
        other.other = self
        self.pipe = _Pipe(self._network, self, other)
        other.pipe = _Pipe(self._network, other, self)

    def send(self, parts: Sequence[bytes | bytearray | memoryview]) -> None:
        """The parts of one frame, which begins with its length."""
        if not self.is_closed:
            self.pipe.put(b"".join(parts))

    def close(self) -> None:
        """Hang up; the other end hears of it behind what was sent."""
        if not self.is_closed:
            self.is_closed = True
            self.pipe.put(None)
            self._network.forget(self)

    def take(self, frame: bytes | None) -> None:
        """What the other end sent, or None if it has hung up. A step of the process."""
        if self.is_closed:
            return
        if frame is None:
            self.close()
            self.broken(ConnectionResetError(errno.ECONNRESET, "the other end hung up"))
            return
        memory = bytearray(frame)
        try:
            self.received(memoryview(memory)[4:])
        except ProtocolViolation as violation:
            self.close()
            self.broken(ConnectionAbortedError(errno.ECONNABORTED, str(violation)))
        finally:
            # Real buffers are used for the next frame: nobody may look at this one any more.
            memory[4:] = b"\xee" * (len(memory) - 4)

    def break_off(self) -> None:
        """The connection is reset."""
        self.pipe.clear()
        self.process.submit(self.take, None)

    def die(self, *, silently: bool) -> None:
        """The process is gone; what its kernel has to send still leaves, if there is power."""
        if silently:
            self.pipe.clear()
        else:
            self.is_closed = True
            self.pipe.put(None)
            self._network.forget(self)


class _Pipe:
    """One direction of a connection: first in, first out, with delays."""

    def __init__(self, network: Network, source: End, target: End) -> None:
        self._network = network
        self._ways = source.process.host, target.process.host
        self._target = target
        self._queue: deque[tuple[float, bytes | None]] = deque()

    def put(self, frame: bytes | None) -> None:
        network = self._network
        network.frames += 1
        due_s = network.loop.time() + network.weather.delay_s(network.random)
        if self._queue:
            due_s = max(due_s, self._queue[-1][0])
        self._queue.append((due_s, frame))
        network.loop.call_at(due_s, self.pump, context=NOBODY)

    def pump(self) -> None:
        """Hand over what is due, unless the way is cut."""
        queue, network = self._queue, self._network
        while queue and queue[0][0] <= network.loop.time() + TIMER_RESOLUTION_S:
            if network.is_cut(*self._ways) or network.is_off(self._ways[1]):
                network.stall(self)
                return
            self._target.process.submit(self._target.take, queue.popleft()[1])

    def clear(self) -> None:
        self._queue.clear()
