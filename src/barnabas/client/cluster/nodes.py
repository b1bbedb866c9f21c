"""The nodes of a cluster: an address each, connections to it, and how it has fared lately.

Addresses to begin with have negative ids, -1 for the first: who lives there is not known yet.
"""

import asyncio
import errno
import random
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from barnabas.client.cluster.failures import told_by_network
from barnabas.client.cluster.metadata import BrokerInfo
from barnabas.client.cluster.patience import Backoff
from barnabas.client.errors import KafkaError
from barnabas.client.settings import ConnectionSettings
from barnabas.net import SocketPeers
from barnabas.wire.peer import Answered
from barnabas.wire.schema import Message


class Nodes:
    """Everybody who can be asked."""

    def __init__(self, settings: ConnectionSettings, told: Callable[[KafkaError], None]) -> None:
        self.loop = asyncio.get_running_loop()
        self._settings = settings
        self._told = told
        self.peers = SocketPeers(
            self.loop, settings.client_id, settings.max_answer_bytes, one_name=True
        )
        self._bootstrap = [
            self._node(BrokerInfo(-1 - place, *address))
            for place, address in enumerate(settings.bootstrap_servers)
        ]
        self._known: dict[int, Node] = {}

    def get(self, node_id: int) -> "Node | None":
        return self._known.get(node_id)

    def learn(self, brokers: Mapping[int, BrokerInfo]) -> None:
        """These are all there are; connections to others are closed."""
        before, self._known = self._known, {}
        for node_id, broker in brokers.items():
            node = before.get(node_id)
            if node is not None and (node.host, node.port) == (broker.host, broker.port):
                self._known[node_id] = before.pop(node_id)
            else:
                self._known[node_id] = self._node(broker)
        for gone in before.values():
            gone.close()

    def meet(self, broker: BrokerInfo) -> None:
        """One that was not known; it may have joined a moment ago."""
        if broker.node_id not in self._known:
            self._known[broker.node_id] = self._node(broker)

    def by_readiness(self) -> "list[Node]":
        """Whom to ask first when anybody will do: the least busy of those that answer."""
        order = sorted(
            self._known.values(),
            key=lambda node: (node.has_failed, node.in_flight, random.random()),
        )
        return order + random.sample(self._bootstrap, len(self._bootstrap))

    def close(self) -> None:
        self.peers.close()

    def _node(self, broker: BrokerInfo) -> "Node":
        return Node(self, broker, self._settings)


class Node:
    """One address."""

    def __init__(self, nodes: Nodes, broker: BrokerInfo, settings: ConnectionSettings) -> None:
        self.node_id = broker.node_id
        self.host = broker.host
        self.port = broker.port
        self.in_flight = 0
        self._nodes = nodes
        self._backoff = Backoff(settings.reconnect_backoff_ms, settings.reconnect_backoff_max_ms)
        self._purposes: set[str] = set()

    @property
    def has_failed(self) -> bool:
        return self._backoff.failures > 0

    def send(
        self, request: Message, timeout_ms: int, answered: Answered | None, purpose: str = ""
    ) -> None:
        """As `barnabas.wire.peer.Peer.send`."""
        self.in_flight += 1
        self._purposes.add(purpose)

        def counted(outcome: Any) -> None:
            self.in_flight -= 1
            if not isinstance(outcome, OSError):
                self._backoff.reset()
            elif outcome.errno != errno.EPROTONOSUPPORT:
                self._backoff.next_ms()
                self._nodes._told(told_by_network(outcome))
            if answered is not None:
                answered(outcome)

        self._nodes.peers.at(self.host, self.port, purpose).send(request, timeout_ms, counted)

    async def ask(self, request: Message, timeout_ms: int, purpose: str = "") -> Any:
        """The response; OSError if there is none."""
        answer: asyncio.Future[Any] = self._nodes.loop.create_future()

        def answered(outcome: Any) -> None:
            if not answer.done():
                answer.set_result(outcome)

        self.send(request, timeout_ms, answered, purpose)
        outcome = await answer
        if isinstance(outcome, OSError):
            raise outcome
        return outcome

    def version(self, key: int) -> int | None:
        for purpose in self._purposes:
            version = self._nodes.peers.at(self.host, self.port, purpose).version(key)
            if version is not None:
                return version
        return None

    def close(self) -> None:
        for purpose in self._purposes:
            self._nodes.peers.at(self.host, self.port, purpose).close()


def addresses(nodes: Iterable[Node]) -> str:
    return ", ".join(f"{node.host}:{node.port}" for node in nodes)
