"""Clients that do not speak Kafka's protocol, recognised by the first bytes of an invalid frame.

The bytes of another protocol, read as the length of a frame, exceed every limit. So this is
reached only for a frame that closes the connection anyway.
"""

from barnabas.wire.errors import ProtocolViolation

_TLS_HANDSHAKE = b"\x16\x03"
_HTTP_2 = b"PRI "
_HTTP_METHODS = frozenset(
    (b"GET ", b"HEAD", b"POST", b"PUT ", b"DELE", b"OPTI", b"PATC", b"CONN", b"TRAC", _HTTP_2)
)

_HTTP_TEXT = (
    b"This port is for Kafka clients; it does not speak HTTP. "
    b"The schema registry and the metrics have ports of their own.\n"
)
_HTTP_RESPONSE = (
    b"HTTP/1.1 400 Bad Request\r\n"
    b"Content-Type: text/plain\r\n"
    b"Content-Length: %d\r\n"
    b"Connection: close\r\n\r\n%b"
) % (len(_HTTP_TEXT), _HTTP_TEXT)


class ForeignProtocol(ProtocolViolation):
    """The client speaks another protocol; `response` says so in that protocol, or is empty."""

    def __init__(self, reason: str, response: bytes = b"") -> None:
        super().__init__(reason)
        self.response = response


def invalid_length(
    length: int, max_bytes: int, limit_name: str = "socket.request.max.bytes"
) -> ProtocolViolation:
    """Returns the error for a frame that claims a negative length, or more than `max_bytes`."""
    start = length.to_bytes(4, signed=True)
    if start in _HTTP_METHODS:
        return ForeignProtocol(
            "the client speaks HTTP, and this port is for Kafka clients; the schema registry and "
            "the metrics have ports of their own",
            b"" if start == _HTTP_2 else _HTTP_RESPONSE,
        )
    if start.startswith(_TLS_HANDSHAKE):
        return ForeignProtocol("the client speaks TLS, and the listener is PLAINTEXT")
    return ProtocolViolation(f"a request of {length} bytes; {limit_name} is {max_bytes}")
