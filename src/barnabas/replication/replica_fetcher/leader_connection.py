"""The connection of one replica fetcher to its leader."""

import asyncio
import logging
from functools import partial
from typing import Any

from barnabas.metadata.states import ListenerEndpoint
from barnabas.replication.replica_fetcher.replica_fetcher import ReplicaFetcher
from barnabas.wire.peer import Peer, Peers
from barnabas.wire.schema import Message

NEW_PARTITION_WAIT_MS = 20
"""How long a new partition waits for the response to a fetch that does not name it.

A leader without new records would delay it for the whole `replica.fetch.wait.max.ms`, and with it
every producer that waits for this replica.
"""

_logger = logging.getLogger(__name__)


class LeaderConnection:
    """Keeps one request in flight while the fetcher has one and the leader has an address."""

    __slots__ = (
        "_endpoint",
        "_in_flight",
        "_is_unreachable",
        "_loop",
        "_next_reconnect_ms",
        "_peer",
        "_peers",
        "_purpose",
        "_reconnect_timer",
        "_response_timeout_ms",
        "_timer",
        "fetcher",
        "leader_id",
    )

    def __init__(
        self,
        leader_id: int,
        fetcher: ReplicaFetcher,
        peers: Peers,
        loop: asyncio.AbstractEventLoop,
        *,
        purpose: str,
        response_timeout_ms: int,
    ) -> None:
        self.leader_id = leader_id
        self.fetcher = fetcher
        self._peers = peers
        self._purpose = purpose
        self._response_timeout_ms = response_timeout_ms
        self._loop = loop
        self._endpoint: ListenerEndpoint | None = None
        self._peer: Peer | None = None
        self._in_flight: Message | None = None  # the request that has no response yet
        self._timer: asyncio.TimerHandle | None = None
        self._reconnect_timer: asyncio.TimerHandle | None = None
        self._next_reconnect_ms = 0
        self._is_unreachable = False  # this was logged

    def set_endpoint(self, endpoint: ListenerEndpoint | None) -> None:
        """Sets the address of the leader; None if it has none."""
        if endpoint == self._endpoint:
            return
        self._disconnect()
        self._endpoint = endpoint
        self._connect()
        self.send_next()

    def send_next(self) -> None:
        """Sends the next request, unless one is in flight."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._peer is None or self._in_flight is not None:
            return
        now_ms = self._now_ms()
        request = self.fetcher.next_request(now_ms)
        if request is not None:
            self._in_flight = request
            self._peer.send(request, self._response_timeout_ms, partial(self._on_response, request))
            return
        due_ms = self.fetcher.next_due_ms(now_ms)
        if due_ms is not None:
            self._timer = self._loop.call_later(max(due_ms - now_ms, 1) / 1000, self.send_next)

    def request_soon(self) -> None:
        """There are partitions that the request in flight does not name."""
        if self._in_flight is None:
            self.send_next()
        elif self._reconnect_timer is None:
            wait_ms = max(self._next_reconnect_ms - self._now_ms(), NEW_PARTITION_WAIT_MS)
            self._reconnect_timer = self._loop.call_later(wait_ms / 1000, self._reconnect_if_unsent)

    def close(self) -> None:
        self._disconnect()
        if self._timer is not None:
            self._timer.cancel()
        if self._reconnect_timer is not None:
            self._reconnect_timer.cancel()

    def _reconnect_if_unsent(self) -> None:
        """Fetches over a new connection: a fetch in flight cannot be cancelled otherwise."""
        self._reconnect_timer = None
        if self._in_flight is not None and self.fetcher.has_unsent_partitions:
            self._next_reconnect_ms = self._now_ms() + self.fetcher.limits.wait_max_ms
            self._disconnect()
            self._connect()
            self.send_next()

    def _connect(self) -> None:
        if self._endpoint is not None:
            self._peer = self._peers.at(self._endpoint.host, self._endpoint.port, self._purpose)

    def _disconnect(self) -> None:
        if self._peer is not None:
            self._in_flight = None
            self.fetcher.reset_connection()
            self._peer.close()
            self._peer = None

    def _on_response(self, request: Message, response: Any) -> None:
        if request is not self._in_flight:
            return  # of a former connection
        self._in_flight = None
        now_ms = self._now_ms()
        if isinstance(response, OSError):
            if not self._is_unreachable:
                reason = response.strerror or response
                _logger.info("No response from broker %d: %s", self.leader_id, reason)
            self._is_unreachable = True
            self.fetcher.on_connection_lost(now_ms)
        else:
            self._is_unreachable = False
            try:
                self.fetcher.on_response(response, now_ms)
            except Exception:  # replication must continue
                _logger.exception("A response of broker %d could not be applied", self.leader_id)
                self.fetcher.on_connection_lost(now_ms)
        self.send_next()

    def _now_ms(self) -> int:
        return round(self._loop.time() * 1000)
