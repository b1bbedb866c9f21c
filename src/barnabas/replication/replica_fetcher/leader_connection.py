"""A connection to a leader, over which one fetcher asks."""

import asyncio
import logging
from functools import partial
from typing import Any

from barnabas.metadata.states import ListenerEndpoint
from barnabas.replication.replica_fetcher.replica_fetcher import Fetcher
from barnabas.wire.peer import Peer, Peers
from barnabas.wire.schema import Message

PATIENCE_MS = 20
"""How long a partition that is new waits for the answer to a fetch that does not name it.

A leader with nothing to tell would keep it waiting for the whole `replica.fetch.wait.max.ms`, and
with it every producer that waits for this replica.
"""

_logger = logging.getLogger(__name__)


class Source:
    """Keeps one request under way for as long as there is something to ask, and an address."""

    __slots__ = (
        "_answer_timeout_ms",
        "_endpoint",
        "_hangs_up_again_ms",
        "_impatience",
        "_is_silent",
        "_loop",
        "_peer",
        "_peers",
        "_purpose",
        "_timer",
        "_under_way",
        "fetcher",
        "leader_id",
    )

    def __init__(
        self,
        leader_id: int,
        fetcher: Fetcher,
        peers: Peers,
        loop: asyncio.AbstractEventLoop,
        *,
        purpose: str,
        answer_timeout_ms: int,
    ) -> None:
        self.leader_id = leader_id
        self.fetcher = fetcher
        self._peers = peers
        self._purpose = purpose
        self._answer_timeout_ms = answer_timeout_ms
        self._loop = loop
        self._endpoint: ListenerEndpoint | None = None
        self._peer: Peer | None = None
        self._under_way: Message | None = None  # the request whose answer is awaited
        self._timer: asyncio.TimerHandle | None = None
        self._impatience: asyncio.TimerHandle | None = None
        self._hangs_up_again_ms = 0
        self._is_silent = False  # it did not answer, and that was told

    def point_at(self, endpoint: ListenerEndpoint | None) -> None:
        """The leader is found there from now on, or nowhere."""
        if endpoint == self._endpoint:
            return
        self._hang_up()
        self._endpoint = endpoint
        self._dial()
        self.step()

    def step(self) -> None:
        """Ask if there is something to ask and nothing under way."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._peer is None or self._under_way is not None:
            return
        now_ms = self._now_ms()
        request = self.fetcher.next_request(now_ms)
        if request is not None:
            self._under_way = request
            self._peer.send(request, self._answer_timeout_ms, partial(self._answered, request))
            return
        due_ms = self.fetcher.due_ms(now_ms)
        if due_ms is not None:
            self._timer = self._loop.call_later(max(due_ms - now_ms, 1) / 1000, self.step)

    def hurry(self) -> None:
        """There are partitions that the request under way does not name."""
        if self._under_way is None:
            self.step()
        elif self._impatience is None:
            patience_ms = max(self._hangs_up_again_ms - self._now_ms(), PATIENCE_MS)
            self._impatience = self._loop.call_later(patience_ms / 1000, self._lose_patience)

    def close(self) -> None:
        self._hang_up()
        if self._timer is not None:
            self._timer.cancel()
        if self._impatience is not None:
            self._impatience.cancel()

    def _lose_patience(self) -> None:
        """Ask anew over a new connection: a fetch cannot be called back otherwise."""
        self._impatience = None
        if self._under_way is not None and self.fetcher.has_unnamed:
            self._hangs_up_again_ms = self._now_ms() + self.fetcher.limits.wait_max_ms
            self._hang_up()
            self._dial()
            self.step()

    def _dial(self) -> None:
        if self._endpoint is not None:
            self._peer = self._peers.at(self._endpoint.host, self._endpoint.port, self._purpose)

    def _hang_up(self) -> None:
        if self._peer is not None:
            self._under_way = None
            self.fetcher.moved_away()
            self._peer.close()
            self._peer = None

    def _answered(self, request: Message, answer: Any) -> None:
        if request is not self._under_way:
            return  # nobody waits for it any more
        self._under_way = None
        now_ms = self._now_ms()
        if isinstance(answer, OSError):
            if not self._is_silent:
                _logger.info("no answer from broker %d: %s", self.leader_id, answer.strerror)
            self._is_silent = True
            self.fetcher.lost(now_ms)
        else:
            self._is_silent = False
            try:
                self.fetcher.answered(answer, now_ms)
            except Exception:  # whatever it is, replication must not end with it
                _logger.exception("an answer of broker %d was not taken in", self.leader_id)
                self.fetcher.lost(now_ms)
        self.step()

    def _now_ms(self) -> int:
        return round(self._loop.time() * 1000)
