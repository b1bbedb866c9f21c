"""Sockets, connections and the path of a request from its frame to its response."""
