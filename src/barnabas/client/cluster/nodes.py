"""The nodes of a cluster: connections to each, and how it has fared lately.

A node is known by its address. Those to begin with have no id: who lives there is told later.
"""

import asyncio
import errno
import random
from collections.abc import Callable, Coroutine, Iterable, Iterator
from functools import partial
from typing import Any

from barnabas.client.backoff import Backoff, Deadline
from barnabas.client.cluster.connection_options import terms_of
from barnabas.client.cluster.metadata import BrokerInfo
from barnabas.client.cluster.network_errors import network_error, no_broker_error
from barnabas.client.errors import KafkaError, KafkaException
from barnabas.client.settings import ConnectionSettings
from barnabas.config.addresses import Endpoint
from barnabas.net.counters import ConnectionCounters
from barnabas.net.peer import SocketPeer
from barnabas.wire.peer import ResponseCallback
from barnabas.wire.schema import Message

SendRequest = Callable[..., Coroutine[Any, Any, Any]]
"""`Cluster.ask`, for those who ask through it on its behalf."""

_PATIENCE_MS = 1_000
"""How long one address may take to connect before the next is tried beside it."""


class ClusterNodes:
    """Everybody who can be asked."""

    def __init__(
        self,
        addresses: Iterable[Endpoint],
        settings: ConnectionSettings,
        on_error: Callable[[KafkaError], None],
    ) -> None:
        self.terms = terms_of(settings)
        self.loop = self.terms.loop
        self._settings = settings
        self._told = on_error
        self._at: dict[tuple[str, int], ClusterNode] = {}
        self._bootstrap = [self._meet(*address) for address in addresses]
        self._known: dict[int, ClusterNode] = {}
        self._are_all_down = False
        self.is_closed = False

    def __iter__(self) -> "Iterator[ClusterNode]":
        return iter(self._at.values())

    def get(self, node_id: int) -> "ClusterNode | None":
        return self._known.get(node_id)

    def update(self, brokers: Iterable[BrokerInfo]) -> None:
        """These are all there are; connections to others are closed."""
        self._known = {}
        for broker in brokers:
            self.add(broker)
        needed = {*self._known.values()}
        for node in [each for each in self._at.values() if each not in needed]:
            if node not in self._bootstrap:
                del self._at[node.host, node.port]
                node.close()
            elif not node.in_flight:
                node.close()

    def add(self, broker: BrokerInfo) -> None:
        """One that is known by its id from now on."""
        node = self._known[broker.node_id] = self._meet(broker.host, broker.port)
        node.node_id = broker.node_id

    def rebootstrap(self) -> None:
        """Nothing that is known of the cluster holds: ask the first addresses again (KIP-1102)."""
        self.update([])

    def least_loaded_first(self) -> "list[ClusterNode]":
        """Whom to ask first when anybody will do: the least busy of those that are connected.

        Addresses to begin with come last: they serve when nobody known answers (KIP-899).
        """
        known = sorted(self._known.values(), key=_readiness)
        first = [node for node in self._bootstrap if node not in known]
        return known + sorted(first, key=_readiness)

    async def any_connected(self, deadline: Deadline) -> "ClusterNode":
        """A node that is connected.

        KafkaException when the deadline has passed and nobody was, or when the failure is one
        that lasts.
        """
        failures: dict[str, OSError] = {}
        while True:
            connecting: dict[asyncio.Future[OSError | None], ClusterNode] = {}
            for node in self.least_loaded_first():
                if node.is_open:
                    return node
                connecting[node.connect()] = node
                found = await _first(
                    connecting, min(_PATIENCE_MS, deadline.remaining_ms()), failures
                )
                if found is not None:
                    return found
            found = await _first(connecting, deadline.remaining_ms(), failures)
            if found is not None:
                return found
            for node in connecting.values():
                failures.setdefault(str(node), TimeoutError(errno.ETIMEDOUT, f"{node}: no answer"))
            await self.wait_before_retry(failures, deadline)

    async def wait_before_retry(self, failures: dict[str, OSError], deadline: Deadline) -> None:
        """Everybody failed: wait until somebody may be tried again."""
        if self.is_closed:
            raise KafkaException(KafkaError(KafkaError._DESTROY, "the client was closed"))
        for failure in failures.values():
            error = network_error(failure)
            if not error.retriable():
                raise KafkaException(error)
        pause_ms = min((node.backoff_ms() for node in self.least_loaded_first()), default=0)
        pause_ms = max(pause_ms, self._settings.retry_backoff_ms)
        if deadline.remaining_ms() <= pause_ms:
            await asyncio.sleep(deadline.remaining_ms() / 1000)
            raise KafkaException(no_broker_error(failures))
        await asyncio.sleep(pause_ms / 1000)

    def close(self) -> None:
        self.is_closed = True
        for node in self._at.values():
            node.close()

    def on_connected(self) -> None:
        """Called by a node."""
        self._are_all_down = False

    def on_failure(self, failure: OSError) -> None:
        """Called by a node that has not failed before."""
        error = network_error(failure)
        self._told(error)
        asked = list(self._known.values()) or self._bootstrap
        if not self._are_all_down and all(node.is_down for node in asked):
            self._are_all_down = True
            reason = f"{len(asked)}/{len(asked)} brokers are down: {error.str()}"
            self._told(KafkaError(KafkaError._ALL_BROKERS_DOWN, reason))

    def _meet(self, host: str, port: int) -> "ClusterNode":
        node = self._at.get((host, port))
        if node is None:
            node = self._at[host, port] = ClusterNode(self, host, port, self._settings)
        return node


class ClusterNode:
    """One address, with a connection for each purpose.

    After an attempt to connect that failed the next one has to wait for a while. Who asks during
    that time is told of the failure at once: it may have somebody else to ask.
    """

    def __init__(
        self, nodes: ClusterNodes, host: str, port: int, settings: ConnectionSettings
    ) -> None:
        self.host = host
        self.port = port
        self.node_id = -1  # not told yet
        self.counters = ConnectionCounters()
        self.is_down = False
        self._nodes = nodes
        self._client_id = settings.client_id
        self._backoff = Backoff(settings.reconnect_backoff_ms, settings.reconnect_backoff_max_ms)
        self._failure: OSError | None = None  # of the last attempt to connect
        self._may_try_s = 0.0  # after it
        self._peers: dict[str, SocketPeer] = {}
        self._waiting: list[asyncio.Future[OSError | None]] = []  # for the connection

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"

    @property
    def is_open(self) -> bool:
        """Whether it is connected for no purpose in particular."""
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
        """As `barnabas.net.peer.SocketPeer.send`."""
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
        """The response; OSError if there is none."""
        answer: asyncio.Future[Any] = self._nodes.loop.create_future()

        def answered(outcome: Any) -> None:
            if not answer.done():
                answer.set_result(outcome)

        self.send(request, timeout_ms, answered, purpose, max_version)
        outcome = await answer
        if isinstance(outcome, OSError):
            raise outcome
        return outcome

    def connect(self) -> "asyncio.Future[OSError | None]":
        """Connects, for no purpose in particular; the result is why that failed, if it did."""
        opened: asyncio.Future[OSError | None] = self._nodes.loop.create_future()
        peer = self._peer("")
        failure = self._recent_failure(peer)
        if failure is not None or peer.is_open:
            opened.set_result(failure)
        else:
            self._waiting.append(opened)
            peer.open()
        return opened

    def backoff_ms(self) -> float:
        """How long it must not be tried again."""
        return max(0.0, (self._may_try_s - self._nodes.loop.time()) * 1000)

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
                self._nodes.terms,
                self.host,
                self.port,
                self._client_id,
                counters=self.counters,
                on_change=partial(self._changed, purpose),
                on_close=partial(self._closed, purpose),
            )
        return peer

    def _recent_failure(self, peer: SocketPeer) -> OSError | None:
        if self._nodes.is_closed:
            return ConnectionAbortedError(errno.ECONNABORTED, f"{self}: the client was closed")
        if peer.is_open or peer.is_opening or not self.backoff_ms():
            return None
        return self._failure

    def _changed(self, purpose: str, failure: OSError | None) -> None:
        """A connection is ready, or has broken, or could not be made."""
        if failure is None:
            self.is_down = False
            self._backoff.reset()
            self._nodes.on_connected()
        elif not self._peers[purpose].is_open:
            self._failure = failure
            self._may_try_s = self._nodes.loop.time() + self._backoff.next_ms() / 1000
            self._fell(failure)
        elif self.in_flight:
            self._fell(failure)
        # Else it hung up on a connection that nobody used: the next request opens another.
        waiting, self._waiting = self._waiting, []
        for each in waiting:
            if not each.done():
                each.set_result(failure)

    def _fell(self, failure: OSError) -> None:
        was_down, self.is_down = self.is_down, True
        if not was_down:
            self._nodes.on_failure(failure)

    def _closed(self, purpose: str) -> None:
        del self._peers[purpose]
        for each in self._waiting:
            if not each.done():
                each.set_result(ConnectionAbortedError(errno.ECONNABORTED, f"{self}: closed"))


def _readiness(node: ClusterNode) -> tuple[bool, bool, int, float]:
    return (node.is_down, not node.is_open, node.in_flight, random.random())


async def _first(
    connecting: "dict[asyncio.Future[OSError | None], ClusterNode]",
    timeout_ms: float,
    failures: dict[str, OSError],
) -> ClusterNode | None:
    """The first node that is connected within the time; those that fail go to `failures`."""
    deadline = Deadline.after(timeout_ms)
    while connecting:
        done, _ = await asyncio.wait(
            connecting, timeout=deadline.remaining_ms() / 1000, return_when=asyncio.FIRST_COMPLETED
        )
        for each in done:
            node, failure = connecting.pop(each), each.result()
            if failure is None:
                return node
            failures[str(node)] = failure
        if not done or not connecting:
            break
    return None
