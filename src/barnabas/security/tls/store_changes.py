"""Which changes of a listener's stores are allowed at run time.

Kafka's rules: they keep a mistake from replacing the identity of a broker.
"""

import ssl

from barnabas.net.certificates import CertificateInfo
from barnabas.net.listener_config import ListenerConfig, TlsConfigError
from barnabas.net.tls_stores import ListenerStores

_MAX_STEPS = 8
"""A handshake takes three."""

_TRUST_ADVICE = ". The trust store must hold the authority of the key store's certificate"


def require_allowed_change(
    config: ListenerConfig, before: ListenerStores, after: ListenerStores
) -> None:
    """Raises TlsConfigError if the stores of a listener may not change like this."""
    if (before.key is None) != (after.key is None):
        raise TlsConfigError(
            f"the key store of listener {config.listener} cannot be added or removed at run time: "
            "restart the node"
        )
    if before.trusted is None and after.trusted is not None:
        raise TlsConfigError(
            f"a trust store cannot be added to listener {config.listener} at run time: restart "
            "the node"
        )
    if before.key is None or before.key_store_certificates == after.key_store_certificates:
        return
    _require_same_identity(config, before, after)


def _require_same_identity(
    config: ListenerConfig, before: ListenerStores, after: ListenerStores
) -> None:
    old = [CertificateInfo.of(der) for der in before.key_store_certificates]
    new = [CertificateInfo.of(der) for der in after.key_store_certificates]
    if len(old) != len(new):
        raise TlsConfigError(
            f"the key store of listener {config.listener} has {len(new)} entries and had "
            f"{len(old)}: the number cannot change at run time"
        )
    for was, becomes in zip(old, new, strict=True):
        if was.subject != becomes.subject and not config["ssl.allow.dn.changes"]:
            raise TlsConfigError(
                f"the certificate of listener {config.listener} is for {becomes.subject} and was "
                f"for {was.subject}: set ssl.allow.dn.changes to true to allow that"
            )
        missing = was.alternative_names - becomes.alternative_names
        if missing and not config["ssl.allow.san.changes"]:
            raise TlsConfigError(
                f"the certificate of listener {config.listener} lacks the alternative names "
                f"{', '.join(sorted(missing))} of the one before: set ssl.allow.san.changes to "
                "true to allow that"
            )


def require_handshake(client: ssl.SSLContext, server: ssl.SSLContext, what: str) -> None:
    """Raises TlsConfigError if the two contexts cannot make a handshake, which is in memory.

    The client must not verify host names: a broker connects to others, not to itself.
    """
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = (
        client.wrap_bio(to_client, to_server),
        server.wrap_bio(to_server, to_client, server_side=True),
    )
    try:
        for _ in range(_MAX_STEPS):
            completed = [_step(end) for end in ends]
            if all(completed):
                return
    except ssl.SSLError as error:
        reason = getattr(error, "verify_message", None) or error.reason or str(error)
        advice = "" if "expired" in reason else _TRUST_ADVICE
        raise TlsConfigError(f"{what} cannot make a TLS handshake: {reason}{advice}") from None


def _step(end: ssl.SSLObject) -> bool:
    """Returns whether the end has completed its handshake."""
    try:
        end.do_handshake()
    except ssl.SSLWantReadError:
        return False
    return True
