"""Connections between hosts, which are slow, break, or cross links that are cut.

They stand in for the sockets of a real node. A connection delivers frames in order, in each
direction by its own `_Pipe`. Frames that are sent over a cut link wait, because a kernel would
send them again; they arrive when the link is healed, if both ends still have the connection. The
kernel of a killed process closes its connections; a host without power sends nothing until it is
back.
"""

import errno
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from random import Random
from typing import Any, NamedTuple, Protocol

from tests.simulation.world.clock import Latency
from tests.simulation.world.network import Network
from tests.simulation.world.process import Process, ProcessLoop, current_process

from barnabas.wire.errors import ProtocolViolation

Address = tuple[str, int]

API_KEY = slice(4, 6)
"""Where a request has its API key, after the length of the frame."""

TIMER_RESOLUTION_S = 2e-6
"""By how much a timer may be early."""


class RequestKind(NamedTuple):
    """Requests with an API key, to the listeners at a port."""

    port: int
    api_key: int


class Listener(Protocol):
    """Accepts connections at an address."""

    process: Process

    def accept(self, end: "ConnectionEnd") -> None:
        """Called as a step of the process."""


class ConnectionNetwork(Network):
    """All hosts, their listeners, and every connection."""

    loop: ProcessLoop

    def __init__(self, loop: ProcessLoop, random: Random) -> None:
        super().__init__(loop, random, Latency(min_ms=0.2, fast_ms=2.0))
        self.listeners: dict[Address, Listener] = {}
        self.frames = 0
        self._powered_off: set[str] = set()
        self._ends: dict[ConnectionEnd, None] = {}
        self._attempts: dict[SimulatedConnectAttempt, None] = {}
        self._stalled: dict[_Pipe, None] = {}
        self._held: set[tuple[str, RequestKind]] = set()

    # For processes

    def connect(
        self,
        _: object,
        host: str,
        port: int,
        _configure_socket: object,
        on_connected: Callable[[Any], None],
        on_failed: Callable[[OSError], None],
    ) -> "SimulatedConnectAttempt":
        """Stands in for `barnabas.net.connect_attempt.ConnectAttempt`."""
        return SimulatedConnectAttempt(
            self, current_process(), (host, port), on_connected, on_failed
        )

    def transport(
        self,
        end: "ConnectionEnd",
        *_: object,
        on_frame: Callable[[memoryview], None],
        on_error: Callable[[OSError], None],
    ) -> "ConnectionEnd":
        """Stands in for `barnabas.net.frame_transport.FrameTransport`."""
        end.on_frame, end.on_error = on_frame, on_error
        return end

    async def hold_connection(self, host: str, port: int, _tls: object = None) -> None:
        """Stands in for `barnabas.node.environment.hold_connection`."""
        closed = self.loop.create_future()

        def close(failure: OSError | None) -> None:
            if not closed.done():
                if failure is None:
                    closed.set_result(None)
                else:
                    closed.set_exception(failure)

        def on_connected(end: ConnectionEnd) -> None:
            end.on_frame, end.on_error = lambda _: None, lambda _: close(None)
            closed.add_done_callback(lambda _: end.close())
            timeout.cancel()

        attempt = self.connect(None, host, port, None, on_connected, close)
        timeout = self.loop.call_later(1.0, close, TimeoutError(errno.ETIMEDOUT, "no response"))
        try:
            await closed
        finally:
            attempt.cancel()

    def listen(self, address: Address, listener: Listener) -> None:
        if address in self.listeners:
            raise OSError(errno.EADDRINUSE, f"{address} is in use")
        self.listeners[address] = listener

    def stop_listening(self, listener: Listener) -> None:
        for address in [at for at, other in self.listeners.items() if other is listener]:
            del self.listeners[address]

    # Faults

    def is_powered_off(self, host: str) -> bool:
        return host in self._powered_off

    def heal(self, source: Hashable, target: Hashable) -> None:
        super().heal(source, target)
        self._retry()

    def heal_all(self) -> None:
        super().heal_all()
        self._held.clear()
        self._retry()

    def hold(self, source: str, requests: RequestKind) -> None:
        """Requests of this kind from a host do not arrive, nor what follows them on a connection.

        Other connections between the same hosts are not affected.
        """
        self._held.add((source, requests))

    def release(self, source: str, requests: RequestKind) -> None:
        self._held.discard((source, requests))
        self._retry()

    def is_held(self, source: str, port: int, frame: bytes | None) -> bool:
        if not self._held or frame is None:
            return False
        api_key = int.from_bytes(frame[API_KEY], "big")
        return (source, RequestKind(port, api_key)) in self._held

    def has_held(self, source: str, requests: RequestKind) -> bool:
        """Returns whether such a request was sent and is held."""
        return any(pipe.is_held_by(source, requests) for pipe in self._stalled)

    def break_connections(self, chance: float) -> None:
        """Resets some connections at both ends."""
        for end in list(self._ends):
            if end.is_client and self.random.random() < chance:
                end.reset()
                end.other.reset()

    def on_process_killed(self, process: Process, *, power_loss: bool) -> None:
        for address in [
            at for at, listener in self.listeners.items() if listener.process is process
        ]:
            del self.listeners[address]
        if power_loss:
            self._powered_off.add(process.host)
        for end in [end for end in self._ends if end.process is process]:
            end.on_killed(silently=power_loss)
        for attempt in [attempt for attempt in self._attempts if attempt.process is process]:
            attempt.cancel()

    def power_on(self, host: str) -> None:
        """The kernel is back, without its earlier connections."""
        self._powered_off.discard(host)
        for end in [end for end in self._ends if end.process.host == host]:
            if end.process.is_killed:
                end.on_killed(silently=False)
        self._retry()

    def _retry(self) -> None:
        stalled, self._stalled = self._stalled, {}
        for pipe in stalled:
            pipe.pump()
        for attempt in list(self._attempts):
            attempt.schedule()

    # For the classes below

    def open_connection(self, client: Process, listener: Listener, port: int) -> "ConnectionEnd":
        """Returns the end of the client."""
        here, there = (
            ConnectionEnd(self, client, is_client=True),
            ConnectionEnd(self, listener.process),
        )
        here.join(there, port)
        self._ends[here] = self._ends[there] = None
        listener.process.submit(listener.accept, there)
        return here

    def add_attempt(self, attempt: "SimulatedConnectAttempt") -> None:
        self._attempts[attempt] = None

    def remove_attempt(self, attempt: "SimulatedConnectAttempt") -> None:
        self._attempts.pop(attempt, None)

    def stall(self, pipe: "_Pipe") -> None:
        """The pipe continues after a link was healed, even if its source is gone by then."""
        self._stalled[pipe] = None

    def remove(self, end: "ConnectionEnd") -> None:
        self._ends.pop(end, None)


class SimulatedConnectAttempt:
    """One attempt to connect. It waits while the host cannot respond; the caller has a timeout."""

    def __init__(
        self,
        network: ConnectionNetwork,
        process: Process,
        address: Address,
        on_connected: Callable[[Any], None],
        on_failed: Callable[[OSError], None],
    ) -> None:
        self.process = process
        self._network = network
        self._address = address
        self._on_connected = on_connected
        self._on_failed = on_failed
        self._has_tried = False
        self._is_cancelled = False
        network.add_attempt(self)
        self.schedule()

    def cancel(self) -> None:
        self._is_cancelled = True
        self._network.remove_attempt(self)

    def schedule(self) -> None:
        network = self._network
        network.loop.call_without_process(network.latency.draw_s(network.random), self._try)

    def _try(self) -> None:
        network, (host, port) = self._network, self._address
        is_cut = network.is_cut(self.process.host, host) or network.is_cut(host, self.process.host)
        if self._has_tried or self._is_cancelled or is_cut or network.is_powered_off(host):
            return
        self._has_tried = True
        network.remove_attempt(self)
        listener = network.listeners.get(self._address)
        if listener is None:
            refused = ConnectionRefusedError(errno.ECONNREFUSED, "there is no listener")
            self.process.submit(self._fail, refused)
        else:
            end = network.open_connection(self.process, listener, port)
            self.process.submit(self._connect, end)

    def _fail(self, failure: OSError) -> None:
        if not self._is_cancelled:
            self._on_failed(failure)

    def _connect(self, end: "ConnectionEnd") -> None:
        if self._is_cancelled:
            end.close()
        else:
            self._on_connected(end)


class ConnectionEnd:
    """One end of a connection, with the interface of `FrameTransport`."""

    def __init__(
        self, network: ConnectionNetwork, process: Process, *, is_client: bool = False
    ) -> None:
        self.process = process
        self.is_client = is_client
        self.is_closed = False
        self.on_frame: Callable[[memoryview], None] = lambda _: None
        self.on_error: Callable[[OSError], None] = lambda _: None
        self._network = network

    def join(self, other: "ConnectionEnd", port: int) -> None:
        """Connects the end of a client to that of a listener at `port`."""
        self.other = other
        other.other = self
        self.pipe = _Pipe(self._network, self, other, requests_port=port)
        other.pipe = _Pipe(self._network, other, self, requests_port=None)

    def send(self, parts: Sequence[bytes | bytearray | memoryview]) -> None:
        """Sends the parts of one frame, which begins with its length."""
        if not self.is_closed:
            self.pipe.put(b"".join(parts))

    def close(self) -> None:
        """Closes the connection; the other end sees that after the frames that were sent."""
        if not self.is_closed:
            self.is_closed = True
            self.pipe.put(None)
            self._network.remove(self)

    def receive(self, frame: bytes | None) -> None:
        """Handles a frame, or None if the other end is closed. Called as a step of the process."""
        if self.is_closed:
            return
        if frame is None:
            self.close()
            self.on_error(ConnectionResetError(errno.ECONNRESET, "the other end is closed"))
            return
        memory = bytearray(frame)
        try:
            self.on_frame(memoryview(memory)[4:])
        except ProtocolViolation as violation:
            self.close()
            self.on_error(ConnectionAbortedError(errno.ECONNABORTED, str(violation)))
        finally:
            # Real buffers are reused for the next frame: this one must not be read any more.
            memory[4:] = b"\xee" * (len(memory) - 4)

    def reset(self) -> None:
        self.pipe.clear()
        self.process.submit(self.receive, None)

    def on_killed(self, *, silently: bool) -> None:
        """The process is gone; its kernel still sends the queued frames, if there is power."""
        if silently:
            self.pipe.clear()
        else:
            self.is_closed = True
            self.pipe.put(None)
            self._network.remove(self)


class _Pipe:
    """One direction of a connection: frames in order, with delays.

    `requests_port` is the port of the listener, if its frames are requests.
    """

    def __init__(
        self,
        network: ConnectionNetwork,
        source: ConnectionEnd,
        target: ConnectionEnd,
        *,
        requests_port: int | None,
    ) -> None:
        self._network = network
        self._requests_port = requests_port
        self._link = source.process.host, target.process.host
        self._target = target
        self._queue: deque[tuple[float, bytes | None]] = deque()

    def put(self, frame: bytes | None) -> None:
        network = self._network
        network.frames += 1
        now_s = network.loop.time()
        due_s = now_s + network.latency.draw_s(network.random)
        if self._queue:
            due_s = max(due_s, self._queue[-1][0])
        self._queue.append((due_s, frame))
        network.loop.call_without_process(due_s - now_s, self.pump)

    def pump(self) -> None:
        """Delivers the frames that are due, unless the link is cut."""
        queue, network = self._queue, self._network
        while queue and queue[0][0] <= network.loop.time() + TIMER_RESOLUTION_S:
            if self._is_blocked(queue[0][1]):
                network.stall(self)
                return
            self._target.process.run_now(self._target.receive, queue.popleft()[1])

    def _is_blocked(self, frame: bytes | None) -> bool:
        network, (source, target) = self._network, self._link
        if network.is_cut(source, target) or network.is_powered_off(target):
            return True
        port = self._requests_port
        return port is not None and network.is_held(source, port, frame)

    def is_held_by(self, source: str, requests: RequestKind) -> bool:
        """Returns whether its first frame is such a request."""
        frame = self._queue[0][1] if self._queue else None
        return (
            frame is not None
            and (self._link[0], self._requests_port) == (source, requests.port)
            and int.from_bytes(frame[API_KEY], "big") == requests.api_key
        )

    def clear(self) -> None:
        self._queue.clear()
