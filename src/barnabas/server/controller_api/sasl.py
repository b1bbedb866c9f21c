"""SaslHandshake and SaslAuthenticate, as on the listeners of a broker."""

from barnabas.server.api.sasl import authenticate, handshake

__all__ = ["authenticate", "handshake"]
