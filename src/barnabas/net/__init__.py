"""Connections to other nodes: connect, TLS, SASL, frames. `SocketPeers` are `Peers` over TCP."""

from barnabas.net.peers import SocketPeers

__all__ = ["SocketPeers"]
