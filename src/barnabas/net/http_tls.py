"""TLS of an HTTP service: the contexts of its listener, and of its requests to other instances.

Replaced key and trust stores are read again within seconds. Existing connections keep theirs.
"""

import logging
import ssl
import time
from collections.abc import Callable
from datetime import UTC, datetime

from barnabas.net.certificates import CertificateInfo
from barnabas.net.listener_config import ListenerConfig, TlsConfigError
from barnabas.net.tls_stores import ListenerStores, fingerprint_of, load_stores, tls_settings

_log = logging.getLogger(__name__)
CHECK_INTERVAL_S = 5.0


class HttpTls:
    """Reads the stores at the start, and again when their files have changed."""

    def __init__(
        self,
        config: ListenerConfig,
        service: str,
        monotonic_s: Callable[[], float] = time.monotonic,
    ) -> None:
        """`service` is what messages call it. Raises TlsConfigError."""
        self._config = config
        self._service = service
        self._monotonic_s = monotonic_s
        self._checked_s = monotonic_s()
        self._rejected: tuple[object, ...] = ()
        """The fingerprint of stores that could not be used, which are not read again."""
        self._load()

    @property
    def server(self) -> ssl.SSLContext:
        """The context of clients that connect now."""
        self._check()
        return self._server

    @property
    def client(self) -> ssl.SSLContext:
        """The context of requests to other instances: with the same stores, verifying theirs."""
        self._check()
        return self._client

    def _check(self) -> None:
        now_s = self._monotonic_s()
        if now_s - self._checked_s < CHECK_INTERVAL_S:
            return
        self._checked_s = now_s
        fingerprint = fingerprint_of(self._config)
        if fingerprint in (self._stores.fingerprint, self._rejected):
            return
        self._rejected = fingerprint
        try:
            self._load()
        except TlsConfigError as error:
            _log.error("%s keeps its current certificates: %s", self._service, error)

    def _load(self) -> None:
        stores = load_stores(self._config)
        if stores.key is None:
            raise TlsConfigError("https needs a key and a certificate: set ssl.keystore.location")
        settings = tls_settings(self._config, stores)
        try:
            server = settings.server_context(self._config["ssl.client.auth"])
            client = settings.client_context()
        except (OSError, ValueError) as error:
            raise TlsConfigError(f"the stores of {self._service} cannot be used: {error}") from None
        self._stores, self._server, self._client = stores, server, client
        _warn_of_expiry(stores)


def _warn_of_expiry(stores: ListenerStores) -> None:
    for certificate in stores.key_store_certificates:
        warning = CertificateInfo.of(certificate).find_warning(datetime.now(UTC))
        if warning is not None:
            _log.warning("%s", warning)
