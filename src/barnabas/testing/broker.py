"""One broker in the process of the test, on a thread of its own.

It is the same node that a server runs: its requests come over a socket, its records are in
files, its metadata in a log. Only where it looks at the time, and where a request meets its
handler, does a test have a say.
"""

import asyncio
import errno
import logging
import threading
from collections import Counter
from collections.abc import Coroutine, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Any, Self, TypeVar

from barnabas.config import BrokerSettings, ConfigError
from barnabas.node import Node, NodeError
from barnabas.node.single_node import single_node_properties
from barnabas.node.format import format_new_directories
from barnabas.node.environment import Environment
from barnabas.server.broker_node import BrokerNode as ServedBroker
from barnabas.server.controller_node import ControllerNode
from barnabas.server.network.socket_server import SocketServer, SocketServerSettings
from barnabas.server.network.routes import RouteTable
from barnabas.testing.clock import Clock, Loop
from barnabas.testing.errors import BrokerError
from barnabas.testing.faults import Faults
from barnabas.testing.ports import LOOPBACK, free_port
from barnabas.testing.topics import as_text, creation, deletion, require_done

T = TypeVar("T")

PORTS_TO_TRY = 10
ANSWER_S = 60.0
"""For whatever a broker is told to do; nothing takes nearly as long."""

_NEVER_MS = "2147483647"

DEFAULTS = {
    # Little to create when a group or a transaction first comes.
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    # A member may be as impatient as the test.
    "group.min.session.timeout.ms": "100",
    # Nothing is written that would only matter after a crash, or to other controllers.
    "log.flush.offset.checkpoint.interval.ms": _NEVER_MS,
    "log.flush.start.offset.checkpoint.interval.ms": _NEVER_MS,
    "metadata.max.idle.interval.ms": "0",
    "metadata.log.max.snapshot.interval.ms": "0",
}
"""What a test wants otherwise than a server that is alone; the rest is Kafka's."""

_ROOMS = ("controller", "coordinator", "log", "metadata", "node", "raft", "replication", "server")


class Broker:
    """Serves from `start` or the beginning of a `with` block; gone, with its files, after it.

    `settings` are those of server.properties. A `directory` that is given is kept.
    """

    def __init__(
        self,
        settings: Mapping[str, object] | None = None,
        *,
        port: int = 0,
        directory: Path | str | None = None,
    ) -> None:
        self._given = {name: as_text(value) for name, value in (settings or {}).items()}
        self._port = port
        self._temporary = None if directory else TemporaryDirectory(prefix="barnabas-")
        self.directory = Path(directory or self._temporary.name)  # type: ignore[union-attr]
        self.clock = Clock()
        self.faults = Faults()
        self._running: _Running | None = None

    @property
    def bootstrap_servers(self) -> str:
        """Where clients connect: the same before and after a restart."""
        return f"{LOOPBACK}:{self._port}"

    @property
    def is_running(self) -> bool:
        return self._running is not None

    @property
    def requests(self) -> Counter[str]:
        """How many have come so far, by API: `broker.requests["Fetch"]`."""
        return self.faults.seen.copy()

    # Beginning and end

    def start(self) -> Self:
        """Serve. BrokerError says why it cannot."""
        if self._running is not None:
            raise BrokerError(f"The broker on {self.bootstrap_servers} runs already.")
        try:
            self._running = self._run_at(self._port) if self._port else self._run_somewhere()
        except (ConfigError, NodeError) as error:
            raise BrokerError(f"The broker did not start: {error}") from None
        self._port = self._running.node.listeners[0].port
        return self

    def stop(self) -> None:
        """Stop cleanly, if it runs; what it has is there at the next start."""
        running, self._running = self._running, None
        if running is not None:
            running.end()

    def restart(self) -> None:
        """As the same broker: on the same port, with the same records, groups and topics."""
        self.stop()
        self.start()

    def close(self) -> None:
        """Stop, and leave nothing behind."""
        self.stop()
        if self._temporary is not None:
            self._temporary.cleanup()

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            self.close()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, failure: object, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return await asyncio.to_thread(self.__enter__)

    async def __aexit__(
        self, kind: type[BaseException] | None, failure: object, trace: TracebackType | None
    ) -> None:
        await asyncio.to_thread(self.close)

    # What it has

    def create_topic(
        self, name: str, partitions: int = 1, config: Mapping[str, object] | None = None
    ) -> None:
        """Create a topic that can be used at once; BrokerError says why it cannot be."""
        request = creation(name, partitions, 1, config)
        require_done(self._run(self._node.controller.handle(request)))

    def delete_topic(self, name: str) -> None:
        require_done(self._run(self._node.controller.handle(deletion(name))))

    # Within

    def _run_somewhere(self) -> "_Running":
        """On a port that nobody takes while the broker is stopped, nor between look and bind."""
        for _ in range(PORTS_TO_TRY):
            try:
                return self._run_at(free_port())
            except NodeError as error:
                if getattr(error.__cause__, "errno", None) != errno.EADDRINUSE:
                    raise
        raise NodeError("Every port was taken.")

    def _run_at(self, port: int) -> "_Running":
        settings = BrokerSettings.from_properties(self._properties(port))
        format_new_directories(settings)
        return _Running(settings, self.clock, self.faults)

    @property
    def _node(self) -> Node:
        return self._needed().node

    def _run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run it where the broker lives."""
        try:
            running = self._needed()
        except BrokerError:
            coroutine.close()
            raise
        return running.run(coroutine)

    def _needed(self) -> "_Running":
        if self._running is None:
            raise BrokerError("The broker does not run: start it, or use it in a `with` block.")
        return self._running

    def _properties(self, port: int) -> dict[str, str]:
        properties = single_node_properties(LOOPBACK, 0, self.directory)
        # The controller may have another port each time: nobody else has to find it.
        properties["listeners"] = f"PLAINTEXT://{LOOPBACK}:{port},CONTROLLER://{LOOPBACK}:0"
        return {**properties, **DEFAULTS, **self._given}


class _Running:
    """A node, its loop, and the thread that runs both."""

    def __init__(self, settings: BrokerSettings, clock: Clock, faults: Faults) -> None:
        self._clock = clock
        self._faults = faults
        self._loop = Loop(clock)
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="barnabas-broker", daemon=True
        )
        self._thread.start()
        _QUIET.begin()
        surroundings = Environment(
            clock=clock.time_ms, files=faults.disk.files, network=self._network
        )
        try:
            self.node = self.run(Node.start(settings, surroundings))
        except BaseException:
            self._end_thread()
            raise
        clock.drive(self._loop)

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(ANSWER_S)

    def end(self) -> None:
        self._clock.resume()  # there is some waiting in it
        self._clock.drive(None)
        self._faults.let_go()
        try:
            self.run(self.node.stop())
        finally:
            self._end_thread()

    def _network(
        self,
        node: ServedBroker | ControllerNode,
        settings: SocketServerSettings,
        loop: asyncio.AbstractEventLoop,
    ) -> SocketServer:
        """Faults befall what clients ask, not what nodes ask of a controller."""
        routes = None
        if isinstance(node, ServedBroker):
            routes = RouteTable(node.metrics, self._faults.around(node.handlers))
        return SocketServer(node, settings, loop, routes)

    def _end_thread(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        _QUIET.end()


class _Quiet:
    """As long as there are brokers, their rooms log trouble alone, unless the test wants more."""

    def __init__(self) -> None:
        self._brokers = 0
        self._hushed: list[logging.Logger] = []
        self._lock = threading.Lock()

    def begin(self) -> None:
        with self._lock:
            self._brokers += 1
            for logger in (logging.getLogger(f"barnabas.{room}") for room in _ROOMS):
                if logger.level == logging.NOTSET:
                    logger.setLevel(logging.WARNING)
                    self._hushed.append(logger)

    def end(self) -> None:
        with self._lock:
            self._brokers -= 1
            if self._brokers == 0:
                for logger in self._hushed:
                    logger.setLevel(logging.NOTSET)
                self._hushed.clear()


_QUIET = _Quiet()
