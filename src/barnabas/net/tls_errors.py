"""Failures of TLS handshakes in an operator's words, for both ends of a connection."""

import errno
import ssl

_VERIFICATION_CODES = {
    9: "its certificate is not valid yet",
    10: "its certificate has expired",
    23: "its certificate is revoked",
    62: "its certificate is for another host name",
    64: "its certificate is for another IP address",
}
_UNKNOWN_AUTHORITY_CODES = frozenset({2, 7, 18, 19, 20, 21})

_VERSION_REASONS = frozenset(
    {
        "NO_PROTOCOLS_AVAILABLE",
        "TLSV1_ALERT_PROTOCOL_VERSION",
        "UNKNOWN_PROTOCOL",
        "UNSUPPORTED_PROTOCOL",
        "UNSUPPORTED_SSL_VERSION",
        "VERSION_TOO_LOW",
        "WRONG_SSL_VERSION",
    }
)
_CIPHER_REASONS = frozenset({"NO_SHARED_CIPHER", "NO_SUITABLE_SIGNATURE_ALGORITHM"})


class HandshakeTimeoutError(TimeoutError):
    """The peer did not complete the handshake in time."""

    def __init__(self, timeout_ms: int, received_bytes: int) -> None:
        self.received_bytes = received_bytes
        super().__init__(errno.ETIMEDOUT, f"no TLS handshake within {timeout_ms} ms")


class HandshakeEndError(ConnectionResetError):
    """The peer disconnected before the handshake was done."""

    def __init__(self, received_bytes: int) -> None:
        self.received_bytes = received_bytes
        super().__init__(errno.ECONNRESET, "disconnected during the TLS handshake")


class PlainTextError(ssl.SSLError):
    """The first bytes are not those of TLS."""

    def __init__(self, received: bytes) -> None:
        self.is_http = received[:4] in (b"GET ", b"HEAD", b"POST", b"PUT ", b"OPTI", b"DELE")
        super().__init__(errno.EPROTO, "the peer sent plain text")


class HandshakeSizeError(ssl.SSLError):
    """The peer sent more bytes than a handshake may have."""

    def __init__(self, limit_bytes: int) -> None:
        super().__init__(errno.EPROTO, f"a TLS handshake of more than {limit_bytes} bytes")


def explain_to_client(failure: OSError) -> OSError:
    """Returns the failure of a handshake with a server."""
    if isinstance(failure, ssl.SSLCertVerificationError):
        reason = f"the certificate is not valid: {failure.verify_message}"
    elif isinstance(failure, ConnectionError | ssl.SSLEOFError):
        reason = "disconnected during the TLS handshake: does it expect plain text?"
    elif isinstance(failure, ssl.SSLError):
        if failure.reason == "WRONG_VERSION_NUMBER":
            reason = "TLS handshake failed: the peer answered in plain text"
        else:
            reason = f"TLS handshake failed: {_plain_reason(failure)}"
    else:
        return failure
    return ssl.SSLError(errno.EPROTO, reason)


def explain_to_server(failure: OSError) -> str | None:
    """Returns why a client's handshake failed, and what its operator can do.

    None is for a client that disconnects without a word, as the health checks of load balancers do.
    """
    match failure:
        case HandshakeEndError(received_bytes=0):
            return None
        case HandshakeTimeoutError(received_bytes=0):
            return f"{failure.strerror}: it sent nothing"
        case HandshakeTimeoutError() | HandshakeSizeError():
            return str(failure.strerror)
        case PlainTextError(is_http=True):
            return "it speaks HTTP, and this port is for Kafka clients with TLS"
        case PlainTextError():
            return (
                "it sent plain text, and the listener expects TLS: set security.protocol of the "
                "client to SSL or SASL_SSL"
            )
        case ssl.SSLCertVerificationError():
            return _explain_certificate(failure)
        case ssl.SSLError(reason=str(reason)):
            return _explain_reason(reason, failure)
        case ConnectionError():
            return (
                "it disconnected during the TLS handshake; a client does so if it stops meanwhile, "
                "if it does not trust the certificate of this listener, or expects another host "
                "name"
            )
    return f"the TLS handshake failed: {failure.strerror or failure}"


def _explain_certificate(failure: ssl.SSLCertVerificationError) -> str:
    code = failure.verify_code
    if code in _UNKNOWN_AUTHORITY_CODES:
        return (
            "its certificate is signed by an unknown authority: add the certificate of that "
            "authority to ssl.truststore.location of this listener"
        )
    return _VERIFICATION_CODES.get(code, f"its certificate is not valid: {failure.verify_message}")


def _explain_reason(reason: str, failure: ssl.SSLError) -> str:
    if reason == "PEER_DID_NOT_RETURN_A_CERTIFICATE":
        return (
            "it sent no certificate, and ssl.client.auth is required: set ssl.keystore.location "
            "of the client"
        )
    if reason in _VERSION_REASONS:
        return "it offers none of the protocol versions in ssl.enabled.protocols of this listener"
    if reason in _CIPHER_REASONS:
        return "it offers none of the cipher suites of this listener (ssl.cipher.suites)"
    if "ALERT_UNKNOWN_CA" in reason:
        return (
            "it does not trust the certificate of this listener: add the authority to "
            "ssl.truststore.location of the client"
        )
    if "ALERT_CERTIFICATE_EXPIRED" in reason:
        return "it says that the certificate of this listener has expired: renew it"
    if "ALERT_BAD_CERTIFICATE" in reason or "ALERT_CERTIFICATE_UNKNOWN" in reason:
        return (
            "it rejects the certificate of this listener: its truststore lacks the authority, or "
            "it expects another host name"
        )
    return f"the TLS handshake failed: {_plain_reason(failure)}"


def _plain_reason(failure: ssl.SSLError) -> str:
    return (failure.reason or failure.strerror or str(failure)).replace("_", " ").lower()
