"""The nodes of a cluster, with their connections and their recent failures.

A node is identified by its address. Bootstrap addresses have no node id until metadata arrives.
"""

import asyncio
import errno
import random
import socket
import ssl
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from barnabas.client.backoff import Backoff, Deadline
from barnabas.client.cluster.connection_options import build_connection_options
from barnabas.client.cluster.metadata import BrokerInfo
from barnabas.client.errors import KafkaError, KafkaException
from barnabas.client.settings import ConnectionSettings
from barnabas.config.addresses import Endpoint
from barnabas.net.connection_options import ConnectionCounters
from barnabas.net.peer import SocketPeer
from barnabas.net.sasl import AuthenticationFailed
from barnabas.wire.errors import ErrorCode
from barnabas.wire.peer import ResponseCallback
from barnabas.wire.schema import Message

SendRequest = Callable[..., Coroutine[Any, Any, Any]]
"""`ClusterClient.send_request`, for the parts of a cluster that send requests."""

NO_ADDRESS = (
    "bootstrap.servers is not set: the client cannot connect to a cluster. "
    "Set it to the address of a broker, such as localhost:9092"
)

_NEXT_ADDRESS_MS = 1_000
"""How long to wait for one address to connect before the next is tried as well."""


class ClusterNodes:
    """All nodes that can receive requests."""

    def __init__(
        self,
        addresses: Iterable[Endpoint],
        settings: ConnectionSettings,
        on_error: Callable[[KafkaError], None],
    ) -> None:
        self.options = build_connection_options(settings)
        self.loop = self.options.loop
        self._settings = settings
        self._on_error = on_error
        self._by_address: dict[tuple[str, int], ClusterNode] = {}
        self._bootstrap = [self._node_at(*address) for address in addresses]
        self._brokers: dict[int, ClusterNode] = {}
        self._are_all_down = False
        self.is_closed = False

    def __iter__(self) -> "Iterator[ClusterNode]":
        return iter(self._by_address.values())

    def get(self, node_id: int) -> "ClusterNode | None":
        return self._brokers.get(node_id)

    def update(self, brokers: Iterable[BrokerInfo]) -> None:
        """Sets the brokers of the cluster; connections to other nodes are closed."""
        self._brokers = {}
        for broker in brokers:
            self.add(broker)
        needed = {*self._brokers.values()}
        for node in [node for node in self._by_address.values() if node not in needed]:
            if node not in self._bootstrap:
                del self._by_address[node.host, node.port]
                node.close()
            elif not node.in_flight:
                node.close()

    def add(self, broker: BrokerInfo) -> None:
        """Adds a broker, which has an id from now on."""
        node = self._brokers[broker.node_id] = self._node_at(broker.host, broker.port)
        node.node_id = broker.node_id

    def rebootstrap(self) -> None:
        """Forgets all brokers and starts from the bootstrap addresses again (KIP-1102)."""
        self.update([])

    def least_loaded_first(self) -> "list[ClusterNode]":
        """Returns the nodes in the order to try them: connected and least loaded first.

        Bootstrap addresses come last: they are used when no broker responds (KIP-899).
        """
        brokers = sorted(self._brokers.values(), key=_load)
        bootstrap = [node for node in self._bootstrap if node not in brokers]
        return brokers + sorted(bootstrap, key=_load)

    async def any_connected(self, deadline: Deadline) -> "ClusterNode":
        """Returns a node that is connected; connects one if there is none.

        Raises KafkaException after the deadline, or at once if the error is not retriable.
        """
        failures: dict[str, OSError] = {}
        while True:
            connecting: dict[asyncio.Future[OSError | None], ClusterNode] = {}
            for node in self.least_loaded_first():
                if node.is_open:
                    return node
                connecting[node.connect()] = node
                connected = await _first_connected(
                    connecting, min(_NEXT_ADDRESS_MS, deadline.remaining_ms()), failures
                )
                if connected is not None:
                    return connected
            connected = await _first_connected(connecting, deadline.remaining_ms(), failures)
            if connected is not None:
                return connected
            for node in connecting.values():
                failures.setdefault(
                    str(node), TimeoutError(errno.ETIMEDOUT, f"{node}: no response")
                )
            await self.wait_before_retry(failures, deadline)

    async def wait_before_retry(self, failures: dict[str, OSError], deadline: Deadline) -> None:
        """All nodes have failed: waits until one may be tried again."""
        if self.is_closed:
            raise KafkaException(KafkaError(KafkaError._DESTROY, "the client was closed"))
        for failure in failures.values():
            error = network_error(failure)
            if not error.retriable():
                raise KafkaException(error)
        if not self._by_address:
            raise KafkaException(no_broker_error(failures))
        pause_ms = min((node.backoff_ms() for node in self.least_loaded_first()), default=0)
        pause_ms = max(pause_ms, self._settings.retry_backoff_ms)
        if deadline.remaining_ms() <= pause_ms:
            await asyncio.sleep(deadline.remaining_ms() / 1000)
            raise KafkaException(no_broker_error(failures))
        await asyncio.sleep(pause_ms / 1000)

    def close(self) -> None:
        self.is_closed = True
        for node in self._by_address.values():
            node.close()

    def on_connected(self) -> None:
        """Called by a node that is connected."""
        self._are_all_down = False

    def report(self, error: KafkaError) -> None:
        self._on_error(error)

    def on_failure(self, failure: OSError) -> None:
        """Called by a node that was not down before."""
        error = network_error(failure)
        self.report(error)
        nodes = list(self._brokers.values()) or self._bootstrap
        if not self._are_all_down and all(node.is_down for node in nodes):
            self._are_all_down = True
            reason = f"{len(nodes)}/{len(nodes)} brokers are down: {error.str()}"
            self.report(KafkaError(KafkaError._ALL_BROKERS_DOWN, reason))

    def _node_at(self, host: str, port: int) -> "ClusterNode":
        node = self._by_address.get((host, port))
        if node is None:
            node = self._by_address[host, port] = ClusterNode(self, host, port, self._settings)
        return node


class ClusterNode:
    """One address, with a connection for each purpose.

    After a failed attempt to connect there is a backoff. A request during that time fails at once
    with the error of the attempt: its sender may have another node to try.
    """

    def __init__(
        self, nodes: ClusterNodes, host: str, port: int, settings: ConnectionSettings
    ) -> None:
        self.host = host
        self.port = port
        self.node_id = -1  # not known yet
        self.counters = ConnectionCounters()
        self.is_down = False
        self._nodes = nodes
        self._client_id = settings.client_id
        self._backoff = Backoff(settings.reconnect_backoff_ms, settings.reconnect_backoff_max_ms)
        self._failure: OSError | None = None  # of the last attempt to connect
        self._retry_at_s = 0.0
        self._peers: dict[str, SocketPeer] = {}
        self._waiting: list[asyncio.Future[OSError | None]] = []  # for the connection

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"

    @property
    def is_open(self) -> bool:
        """Whether the connection without a special purpose is open."""
        return "" in self._peers and self._peers[""].is_open

    @property
    def in_flight(self) -> int:
        return self.counters.in_flight

    def send(
        self,
        request: Message,
        timeout_ms: int,
        on_response: ResponseCallback | None,
        purpose: str = "",
        max_version: int | None = None,
    ) -> None:
        """Sends a request: see `barnabas.net.peer.SocketPeer.send`."""
        peer = self._peer(purpose)
        failure = self._recent_failure(peer)
        if failure is None:
            peer.send(request, timeout_ms, on_response, max_version=max_version)
        elif on_response is not None:
            self._nodes.loop.call_soon(on_response, failure)

    async def send_request(
        self,
        request: Message,
        timeout_ms: int,
        purpose: str = "",
        max_version: int | None = None,
    ) -> Any:
        """Returns the response. Raises OSError if there is none."""
        future: asyncio.Future[Any] = self._nodes.loop.create_future()

        def on_response(response: Any) -> None:
            if not future.done():
                future.set_result(response)

        self.send(request, timeout_ms, on_response, purpose, max_version)
        response = await future
        if isinstance(response, OSError):
            raise response
        return response

    def connect(self) -> "asyncio.Future[OSError | None]":
        """Connects, without a special purpose. The future's result is the error, or None."""
        connected: asyncio.Future[OSError | None] = self._nodes.loop.create_future()
        peer = self._peer("")
        failure = self._recent_failure(peer)
        if failure is not None or peer.is_open:
            connected.set_result(failure)
        else:
            self._waiting.append(connected)
            peer.open()
        return connected

    def backoff_ms(self) -> float:
        """Returns how long to wait before the next attempt to connect."""
        return max(0.0, (self._retry_at_s - self._nodes.loop.time()) * 1000)

    def api_version(self, key: int) -> int | None:
        versions = (peer.version(key) for peer in self._peers.values())
        return next((version for version in versions if version is not None), None)

    def close(self) -> None:
        for peer in list(self._peers.values()):
            peer.close()

    def _peer(self, purpose: str) -> SocketPeer:
        peer = self._peers.get(purpose)
        if peer is None:
            peer = self._peers[purpose] = SocketPeer(
                self._nodes.options,
                self.host,
                self.port,
                self._client_id,
                counters=self.counters,
                on_change=partial(self._on_connection_change, purpose),
                on_close=partial(self._on_connection_closed, purpose),
            )
        return peer

    def _recent_failure(self, peer: SocketPeer) -> OSError | None:
        if self._nodes.is_closed:
            return ConnectionAbortedError(errno.ECONNABORTED, f"{self}: the client was closed")
        if peer.is_open or peer.is_opening or not self.backoff_ms():
            return None
        return self._failure

    def _on_connection_change(self, purpose: str, failure: OSError | None) -> None:
        """A connection is ready, broke, or could not be made."""
        if failure is None:
            self.is_down = False
            self._backoff.reset()
            self._nodes.on_connected()
        elif not self._peers[purpose].is_open:
            self._failure = failure
            self._retry_at_s = self._nodes.loop.time() + self._backoff.next_ms() / 1000
            self._on_down(failure)
        elif self.in_flight:
            self._on_down(failure)
        # Else the node closed an idle connection: the next request opens another.
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            if not future.done():
                future.set_result(failure)

    def _on_down(self, failure: OSError) -> None:
        was_down, self.is_down = self.is_down, True
        if not was_down:
            self._nodes.on_failure(failure)

    def _on_connection_closed(self, purpose: str) -> None:
        del self._peers[purpose]
        for future in self._waiting:
            if not future.done():
                future.set_result(ConnectionAbortedError(errno.ECONNABORTED, f"{self}: closed"))


def _load(node: ClusterNode) -> tuple[bool, bool, int, float]:
    return (node.is_down, not node.is_open, node.in_flight, random.random())


async def _first_connected(
    connecting: "dict[asyncio.Future[OSError | None], ClusterNode]",
    timeout_ms: float,
    failures: dict[str, OSError],
) -> ClusterNode | None:
    """Returns the first node that connects within the timeout; adds errors to `failures`."""
    deadline = Deadline.after(timeout_ms)
    while connecting:
        done, _ = await asyncio.wait(
            connecting, timeout=deadline.remaining_ms() / 1000, return_when=asyncio.FIRST_COMPLETED
        )
        for future in done:
            node, failure = connecting.pop(future), future.result()
            if failure is None:
                return node
            failures[str(node)] = failure
        if not done or not connecting:
            break
    return None


_NOT_RETRIABLE = frozenset(
    {KafkaError._AUTHENTICATION, KafkaError._SSL, int(ErrorCode.UNSUPPORTED_VERSION)}
)
"""Errors that a retry does not fix."""


def network_error(exception: OSError) -> KafkaError:
    """Returns the error of a request without a response; its text names the address and cause."""
    code = _code(exception)
    return KafkaError(
        code, exception.strerror or str(exception), retriable=code not in _NOT_RETRIABLE
    )


def no_broker_error(exceptions: Mapping[str, OSError]) -> KafkaError:
    """Returns the error for the case that every address has failed."""
    if not exceptions:
        return KafkaError(KafkaError._ALL_BROKERS_DOWN, NO_ADDRESS)
    errors = [network_error(exception) for exception in exceptions.values()]
    codes = {error.code() for error in errors}
    is_same = codes <= {KafkaError._TIMED_OUT} or codes <= {KafkaError._RESOLVE}
    return KafkaError(
        codes.pop() if is_same else KafkaError._ALL_BROKERS_DOWN,
        "no broker responds: " + "; ".join(error.str() for error in errors),
        retriable=True,
    )


def _code(exception: OSError) -> int:
    if isinstance(exception, TimeoutError):
        return KafkaError._TIMED_OUT
    if isinstance(exception, AuthenticationFailed):
        return KafkaError._AUTHENTICATION
    if isinstance(exception, ssl.SSLError):
        return KafkaError._SSL
    if isinstance(exception, socket.gaierror):
        return KafkaError._RESOLVE
    if exception.errno == errno.EPROTONOSUPPORT:
        return int(ErrorCode.UNSUPPORTED_VERSION)
    return KafkaError._TRANSPORT
