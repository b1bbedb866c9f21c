"""A broker in the process of the test, on its own thread.

It is the same node that a server runs, with sockets, log segments and a metadata log. A test
controls only its clock, its disk, and faults between requests and their handlers.
"""

import asyncio
import errno
import logging
import threading
from collections.abc import Coroutine, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self, TypeVar

from barnabas.config import BrokerSettings, ConfigError
from barnabas.node import Node, NodeError
from barnabas.node.environment import Environment
from barnabas.node.format import format_new_directories, single_node_properties
from barnabas.replication import Partitions
from barnabas.server.network.routes import RouteTable
from barnabas.server.network.socket_server import SocketServer, SocketServerSettings
from barnabas.server.nodes import BrokerNode, ControllerNode
from barnabas.testing.clock import BrokerClock, ClockEventLoop
from barnabas.testing.faults import Faults, RequestCounts
from barnabas.testing.ports import LOOPBACK, free_port
from barnabas.testing.requests import (
    BrokerError,
    create_topic_request,
    delete_topic_request,
    raise_for_errors,
    setting_text,
)
from barnabas.testing.setting_names import require_broker_settings, require_topic_configs
from barnabas.wire.errors import KafkaError
from barnabas.wire.schema import Message

T = TypeVar("T")

PORTS_TO_TRY = 10
CALL_TIMEOUT_S = 60.0
"""How long a call to the broker may take. No call takes nearly as long."""

_NEVER_MS = "2147483647"

DEFAULTS = {
    # Few partitions to create for the first group or transaction.
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    # A test may use short session timeouts.
    "group.min.session.timeout.ms": "100",
    # No writes that only matter after a crash, or to other controllers.
    "log.flush.offset.checkpoint.interval.ms": _NEVER_MS,
    "log.flush.start.offset.checkpoint.interval.ms": _NEVER_MS,
    "metadata.max.idle.interval.ms": "0",
    "metadata.log.max.snapshot.interval.ms": "0",
}
"""Settings that differ from those of a single-node server."""

_PACKAGES = (
    "controller",
    "coordinator",
    "log",
    "metadata",
    "node",
    "raft",
    "replication",
    "security",
    "server",
)


class Broker:
    """A broker that runs from `start`, or in a `with` block, which removes its files at the end.

    `settings` are those of server.properties; an unknown one is a BrokerError. A given `directory`
    is kept.
    """

    def __init__(
        self,
        settings: Mapping[str, object] | None = None,
        *,
        port: int = 0,
        directory: Path | str | None = None,
    ) -> None:
        require_broker_settings(settings or {})
        self._overrides = {name: setting_text(value) for name, value in (settings or {}).items()}
        self._port = port
        self._temporary: TemporaryDirectory[str] | None = None
        if directory is None:
            self._temporary = TemporaryDirectory(prefix="barnabas-")
            directory = self._temporary.name
        self.directory = Path(directory)
        self.clock = BrokerClock()
        self.faults = Faults()
        self._running: _BrokerThread | None = None

    @property
    def bootstrap_servers(self) -> str:
        """The address for clients, which stays the same after a restart."""
        return f"{LOOPBACK}:{self._port}"

    @property
    def is_running(self) -> bool:
        return self._running is not None

    @property
    def requests(self) -> RequestCounts:
        """The number of requests received so far, by API: `broker.requests["Fetch"]`."""
        return self.faults.request_counts.copy()

    def start(self) -> Self:
        """Starts the broker. Raises BrokerError if it cannot start."""
        if self._running is not None:
            raise BrokerError(f"The broker on {self.bootstrap_servers} is already running.")
        try:
            self._running = (
                self._run_on_port(self._port) if self._port else self._run_on_free_port()
            )
        except (ConfigError, NodeError) as error:
            raise BrokerError(f"The broker did not start: {error}") from None
        self._port = self._running.node.listeners[0].port
        return self

    def stop(self) -> None:
        """Stops the broker cleanly if it runs; its data is kept for the next start."""
        running, self._running = self._running, None
        if running is not None:
            running.stop()

    def restart(self) -> None:
        """Stops and starts the broker on the same port with the same data."""
        self.stop()
        self.start()

    def close(self) -> None:
        """Stops the broker and removes its temporary files."""
        self.stop()
        if self._temporary is not None:
            self._temporary.cleanup()

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            self.close()
            raise

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return await asyncio.to_thread(self.__enter__)

    async def __aexit__(self, *_: object) -> None:
        await asyncio.to_thread(self.close)

    def create_topic(
        self,
        name: str,
        partitions: int | None = None,
        config: Mapping[str, object] | None = None,
    ) -> None:
        """Creates a topic with that many partitions, or `num.partitions` of the broker.

        Raises BrokerError if the controller rejects it.
        """
        require_topic_configs(config or {})
        self._change_topics(create_topic_request(name, partitions, 1, config))

    def delete_topic(self, name: str) -> None:
        self._change_topics(delete_topic_request(name))

    def compact(self) -> None:
        """Compacts the topics whose cleanup.policy has `compact`, and returns when it is done.

        Neither the dirty ratio nor the active segment matters; `min.compaction.lag.ms` does. To see
        a tombstone removed, compact, advance the clock by `delete.retention.ms` and compact again.
        """
        self._run(_compact(self._node.broker.partitions))

    def _change_topics(self, request: Message) -> None:
        try:
            response = self._run(self._node.controller.handle(request))
        except KafkaError as error:
            raise BrokerError(str(error)) from error
        raise_for_errors(response)

    def _run_on_free_port(self) -> "_BrokerThread":
        """Uses a port that stays reserved while the broker is stopped."""
        for _ in range(PORTS_TO_TRY):
            try:
                return self._run_on_port(free_port())
            except NodeError as error:
                if getattr(error.__cause__, "errno", None) != errno.EADDRINUSE:
                    raise
        raise NodeError(f"No free port found in {PORTS_TO_TRY} attempts.")

    def _run_on_port(self, port: int) -> "_BrokerThread":
        settings = BrokerSettings.from_properties(self._properties(port))
        format_new_directories(settings)
        return _BrokerThread(settings, self.clock, self.faults)

    @property
    def _node(self) -> Node:
        return self._require_running().node

    def _run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Runs a coroutine on the event loop of the broker."""
        try:
            running = self._require_running()
        except BrokerError:
            coroutine.close()
            raise
        return running.run(coroutine)

    def _require_running(self) -> "_BrokerThread":
        if self._running is None:
            raise BrokerError("The broker is not running: call start, or use it in a `with` block.")
        return self._running

    def _properties(self, port: int) -> dict[str, str]:
        properties = single_node_properties(LOOPBACK, 0, self.directory)
        # Nothing else connects to the controller, so its port can change.
        properties["listeners"] = f"PLAINTEXT://{LOOPBACK}:{port},CONTROLLER://{LOOPBACK}:0"
        return {**properties, **DEFAULTS, **self._overrides}


async def _compact(partitions: Partitions) -> None:
    done = asyncio.Event()
    partitions.cleaner.clean_now(done.set)
    await done.wait()


class _BrokerThread:
    """A node, its event loop, and the thread that runs them."""

    def __init__(self, settings: BrokerSettings, clock: BrokerClock, faults: Faults) -> None:
        self._clock = clock
        self._faults = faults
        self._loop = ClockEventLoop(clock)
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="barnabas-broker", daemon=True
        )
        self._thread.start()
        _LOG_SILENCER.add_broker()
        environment = Environment(
            clock=clock.time_ms, files=faults.disk.files, network=self._network
        )
        try:
            self.node = self.run(Node.start(settings, environment))
        except BaseException:
            self._stop_thread()
            raise
        clock.attach(self._loop)

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(CALL_TIMEOUT_S)

    def stop(self) -> None:
        self._clock.resume()  # stopping the node waits for timers
        self._clock.attach(None)
        self._faults.release()
        try:
            self.run(self.node.stop())
        finally:
            self._stop_thread()

    def _network(
        self,
        node: BrokerNode | ControllerNode,
        settings: SocketServerSettings,
        loop: asyncio.AbstractEventLoop,
    ) -> SocketServer:
        """Injects faults into requests to the broker, not into those to the controller."""
        routes = None
        if isinstance(node, BrokerNode):
            routes = RouteTable(node.metrics, self._faults.wrap(node.handlers))
        return SocketServer(node, settings, loop, routes)

    def _stop_thread(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        _LOG_SILENCER.remove_broker()


class _LogSilencer:
    """Logs only warnings of the broker while brokers run, unless the test has set a level."""

    def __init__(self) -> None:
        self._brokers = 0
        self._silenced: list[logging.Logger] = []
        self._lock = threading.Lock()

    def add_broker(self) -> None:
        with self._lock:
            self._brokers += 1
            for logger in (logging.getLogger(f"barnabas.{package}") for package in _PACKAGES):
                if logger.level == logging.NOTSET:
                    logger.setLevel(logging.WARNING)
                    self._silenced.append(logger)

    def remove_broker(self) -> None:
        with self._lock:
            self._brokers -= 1
            if self._brokers == 0:
                for logger in self._silenced:
                    logger.setLevel(logging.NOTSET)
                self._silenced.clear()


_LOG_SILENCER = _LogSilencer()
