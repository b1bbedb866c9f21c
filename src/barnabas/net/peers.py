"""All connections that a node opens to other nodes."""

import asyncio

from barnabas.net.connection_options import (
    MAX_RESPONSE_BYTES,
    ConnectionOptions,
    PeerSecurity,
    response_buffers,
)
from barnabas.net.peer import SocketPeer


class SocketPeers:
    """One connection for every address and purpose, each opened when it is first needed."""

    __slots__ = ("_client_id", "_peers", "_terms")

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        client_id: str,
        security: PeerSecurity | None = None,
        *,
        max_response_bytes: int = MAX_RESPONSE_BYTES,
    ) -> None:
        security = security or PeerSecurity()
        self._terms = ConnectionOptions(
            loop=loop,
            buffers=response_buffers(max_response_bytes),
            max_response_bytes=max_response_bytes,
            tls=security.tls,
            sasl=security.sasl,
        )
        self._client_id = client_id
        self._peers: dict[tuple[str, int, str], SocketPeer] = {}

    def at(self, host: str, port: int, purpose: str) -> SocketPeer:
        key = (host, port, purpose)
        peer = self._peers.get(key)
        if peer is None:
            name = f"{self._client_id}-{purpose}"
            peer = SocketPeer(self._terms, host, port, name, on_close=lambda: self._forget(key))
            self._peers[key] = peer
        return peer

    def close(self) -> None:
        """Closes every connection."""
        for peer in list(self._peers.values()):
            peer.close()

    def _forget(self, key: tuple[str, int, str]) -> None:
        self._peers.pop(key, None)
