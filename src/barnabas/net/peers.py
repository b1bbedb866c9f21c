"""All connections that this node opens, and the memory that their answers are received into."""

import asyncio

from barnabas.net.buffers import Buffers
from barnabas.net.peer import SocketPeer

LARGEST_ANSWER_BYTES = 100 << 20
"""A fetch brings at least one batch whole, however large: no less than a request may have."""

_LARGEST_ANSWERS_AT_ONCE = 8
_KEPT_BYTES = 32 << 20
_LARGEST_KEPT_BYTES = 16 << 20
"""An answer to a follower that lags brings 10 MiB (replica.fetch.response.max.bytes), then more."""


class SocketPeers:
    """One connection for every address and purpose, each opened when it is first needed.

    A node's connections say what they are for in their client id. Those of a client have
    `one_name`: quotas and logs go by it.
    """

    __slots__ = ("_client_id", "_one_name", "_peers", "buffers", "largest_answer_bytes", "loop")

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        client_id: str,
        largest_answer_bytes: int = LARGEST_ANSWER_BYTES,
        *,
        one_name: bool = False,
    ) -> None:
        self.loop = loop
        self.largest_answer_bytes = largest_answer_bytes
        self.buffers = Buffers(
            _LARGEST_ANSWERS_AT_ONCE * largest_answer_bytes, _KEPT_BYTES, _LARGEST_KEPT_BYTES
        )
        self._client_id = client_id
        self._one_name = one_name
        self._peers: dict[tuple[str, int, str], SocketPeer] = {}

    def at(self, host: str, port: int, purpose: str) -> SocketPeer:
        key = (host, port, purpose)
        peer = self._peers.get(key)
        if peer is None:
            name = self._client_id if self._one_name else f"{self._client_id}-{purpose}"
            peer = SocketPeer(self, host, port, purpose, name)
            self._peers[key] = peer
        return peer

    def forget(self, peer: SocketPeer) -> None:
        """It was closed, and need not be kept for the next who asks."""
        key = (peer.host, peer.port, peer.purpose)
        if self._peers.get(key) is peer:
            del self._peers[key]

    def close(self) -> None:
        """Hang up on everybody."""
        for peer in list(self._peers.values()):
            peer.close()
