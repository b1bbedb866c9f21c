"""Connections to other nodes: `SocketPeers` are `barnabas.wire.peer.Peers` over TCP."""

from barnabas.net.peers import SocketPeers

__all__ = ["SocketPeers"]
