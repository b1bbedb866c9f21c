"""All connections that a node opens to others."""

import asyncio

from barnabas.net.peer import SocketPeer
from barnabas.net.terms import LARGEST_ANSWER_BYTES, Terms, buffers_for


class SocketPeers:
    """One connection for every address and purpose, each opened when it is first needed."""

    __slots__ = ("_client_id", "_peers", "_terms")

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        client_id: str,
        largest_answer_bytes: int = LARGEST_ANSWER_BYTES,
    ) -> None:
        self._terms = Terms(
            loop=loop,
            buffers=buffers_for(largest_answer_bytes),
            largest_answer_bytes=largest_answer_bytes,
        )
        self._client_id = client_id
        self._peers: dict[tuple[str, int, str], SocketPeer] = {}

    def at(self, host: str, port: int, purpose: str) -> SocketPeer:
        key = (host, port, purpose)
        peer = self._peers.get(key)
        if peer is None:
            name = f"{self._client_id}-{purpose}"
            peer = SocketPeer(self._terms, host, port, name, closed=lambda: self._forget(key))
            self._peers[key] = peer
        return peer

    def close(self) -> None:
        """Hang up on everybody."""
        for peer in list(self._peers.values()):
            peer.close()

    def _forget(self, key: tuple[str, int, str]) -> None:
        """It was closed, and need not be kept for the next who asks."""
        self._peers.pop(key, None)
