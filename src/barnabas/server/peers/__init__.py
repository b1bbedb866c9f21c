"""Connections to other nodes: `SocketPeers` are `barnabas.wire.peer.Peers` over TCP."""

from barnabas.server.peers.peers import SocketPeers

__all__ = ["SocketPeers"]
