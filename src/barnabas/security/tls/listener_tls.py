"""TLS of one listener: the contexts of both ends, principals, and reloads of the stores."""

import logging
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from barnabas.config.addresses import SecurityProtocol
from barnabas.net.certificates import CertificateInfo, subject_of
from barnabas.net.cipher_suites import TLS_1_3_SUITES
from barnabas.net.listener_config import ListenerConfig, TlsConfigError
from barnabas.net.tls import ClientAuth, TlsContext
from barnabas.net.tls_stores import ListenerStores, fingerprint_of, load_stores, tls_settings
from barnabas.security.principal import ANONYMOUS, USER, KafkaPrincipal
from barnabas.security.tls.principal_mapping import MappingRuleError, PrincipalMapper
from barnabas.security.tls.store_changes import require_allowed_change, require_handshake

log = logging.getLogger(__name__)

_CACHED_PRINCIPALS = 1024


@dataclass(slots=True, frozen=True)
class TlsState:
    """The stores of a listener, and the contexts that are built from them."""

    stores: ListenerStores
    server: ssl.SSLContext | None
    client: ssl.SSLContext | None


class ListenerTls:
    """TLS of a listener that this node serves, connects to, or both.

    The constructor, `validate` and `load` read files. `load` may run in a thread; `apply` then
    makes its result current. Existing connections keep the context that they began with.
    """

    def __init__(
        self,
        config: ListenerConfig,
        protocol: SecurityProtocol,
        *,
        is_served: bool = True,
        is_connected_to: bool = False,
    ) -> None:
        """Raises TlsConfigError."""
        self.listener = config.listener
        self._protocol = protocol
        self._is_served = is_served
        self._is_connected_to = is_connected_to
        self._user_name = _user_names(config)
        self._suite_warning = _find_suite_warning(config["ssl.cipher.suites"])
        self._requires_certificates = is_served and self._client_auth(config) == "required"
        self._state = self._build(config, load_stores(config))
        self.client: TlsContext | None = None
        """The current context of connections to this listener of other nodes."""
        if self._state.client is not None:
            self.client = TlsContext(self._state.client)
        self._require_own_trust(self._state, config)

    @property
    def server_context(self) -> ssl.SSLContext:
        """The current context of connections that this node accepts."""
        assert self._state.server is not None, "this node does not serve the listener"
        return self._state.server

    @property
    def authenticates_clients(self) -> bool:
        """Whether a client is known after the handshake. With SASL it is not."""
        return self._protocol is SecurityProtocol.SSL

    def principal_of(self, tls_object: ssl.SSLObject) -> KafkaPrincipal:
        """Returns the principal of a client. Raises NoMatchingRuleError."""
        certificate = tls_object.getpeercert(binary_form=True)
        if certificate is None or not self.authenticates_clients:
            return ANONYMOUS
        return KafkaPrincipal(USER, self._user_name(certificate))

    def find_warnings(self, now: datetime | None = None) -> list[str]:
        """Returns a line for each certificate that has expired or will soon, for suites, and for a
        trust store that is missing."""
        now = now or datetime.now(UTC)
        infos = map(CertificateInfo.of, self._state.stores.key_store_certificates)
        warnings = [info.find_warning(now) for info in infos]
        return [
            f"listener {self.listener}: {warning}"
            for warning in (*warnings, self._suite_warning, self._find_trust_warning())
            if warning
        ]

    def _find_trust_warning(self) -> str | None:
        """As in Kafka: without a trust store, the system decides which clients may connect."""
        if not self._requires_certificates or self._state.stores.trusted is not None:
            return None
        return (
            "ssl.client.auth is required and there is no trust store: every authority that this "
            "system trusts can issue certificates for clients; set ssl.truststore.location"
        )

    def describe(self) -> str:
        """Returns whom the certificate is for, and until when it is valid."""
        if not self._state.stores.key_store_certificates:
            return "a trust store, and no key store"
        info = CertificateInfo.of(self._state.stores.key_store_certificates[0])
        return f"{info.subject}, valid until {info.valid_until:%Y-%m-%d}"

    # Changes at run time

    def needs_reload(self, values: Mapping[str, Any]) -> bool:
        """Whether settings of the stores, or their files, are others than the current ones."""
        config = ListenerConfig(self.listener, values)
        return fingerprint_of(config) != self._state.stores.fingerprint

    def load(self, values: Mapping[str, Any]) -> TlsState:
        """Returns the state with these settings. Raises TlsConfigError if it is not allowed."""
        config = ListenerConfig(self.listener, values)
        stores = load_stores(config)
        require_allowed_change(config, self._state.stores, stores)
        state = self._build(config, stores)
        self._require_mutual_trust(state, config)
        return state

    def apply(self, state: TlsState) -> None:
        self._state = state
        if self.client is not None and state.client is not None:
            self.client.context = state.client

    # Building

    def _build(self, config: ListenerConfig, stores: ListenerStores) -> TlsState:
        if self._is_served and stores.key is None:
            raise TlsConfigError(
                f"listener {config.listener} needs a key and a certificate: set "
                "ssl.keystore.location and ssl.keystore.type, or ssl.keystore.key and "
                "ssl.keystore.certificate.chain"
            )
        settings = tls_settings(config, stores)
        try:
            return TlsState(
                stores,
                settings.server_context(self._client_auth(config)) if self._is_served else None,
                settings.client_context() if self._is_connected_to else None,
            )
        except OSError as error:
            raise TlsConfigError(
                f"the key and certificates of listener {config.listener} cannot be used: "
                f"{_reason(error)}"
            ) from None
        except ValueError as error:
            raise TlsConfigError(f"TLS of listener {config.listener}: {error}") from None

    def _client_auth(self, config: ListenerConfig) -> ClientAuth:
        """With SASL, clients have another identity: only the listener's own setting counts."""
        if self._protocol is SecurityProtocol.SASL_SSL:
            own: ClientAuth | None = config.own("ssl.client.auth")
            return own or "none"
        auth: ClientAuth = config["ssl.client.auth"]
        return auth

    def _require_own_trust(self, state: TlsState, config: ListenerConfig) -> None:
        """Nodes usually share their stores: one that does not trust itself trusts no other."""
        if self._is_served and self._is_connected_to:
            require_handshake(
                _without_host(config, state.stores),
                self.server_context,
                f"listener {config.listener} with itself",
            )

    def _require_mutual_trust(self, state: TlsState, config: ListenerConfig) -> None:
        """Other nodes still have the stores from before: both must work with both."""
        if not (self._is_served and self._is_connected_to):
            return
        assert state.server is not None
        what = f"the new and the current stores of listener {config.listener}"
        require_handshake(_without_host(config, state.stores), self.server_context, what)
        require_handshake(_without_host(config, self._state.stores), state.server, what)


def monitoring_context(config: ListenerConfig) -> ssl.SSLContext:
    """Returns a client's context that verifies nothing. Raises TlsConfigError."""
    settings = replace(tls_settings(config, load_stores(config)), verify_certificates=False)
    try:
        return settings.client_context()
    except (OSError, ValueError) as error:
        raise TlsConfigError(f"TLS of listener {config.listener}: {error}") from None


def _without_host(config: ListenerConfig, stores: ListenerStores) -> ssl.SSLContext:
    """Returns a client's context that does not verify host names."""
    return replace(tls_settings(config, stores), verify_host=False).client_context()


def _user_names(config: ListenerConfig) -> Callable[[bytes], str]:
    """Returns a cached function from certificates to user names."""
    try:
        mapper = PrincipalMapper(config["ssl.principal.mapping.rules"])
    except MappingRuleError as error:
        raise TlsConfigError(f"ssl.principal.mapping.rules: {error}") from None

    @lru_cache(_CACHED_PRINCIPALS)
    def user_name(certificate: bytes) -> str:
        return mapper.user_name(subject_of(certificate))

    return user_name


def _find_suite_warning(suites: tuple[str, ...]) -> str | None:
    """Python's ssl cannot select among the suites of TLS 1.3."""
    missing = [suite for suite in TLS_1_3_SUITES if suite not in suites]
    if not missing or len(missing) == len(TLS_1_3_SUITES):
        return None
    return (
        f"{', '.join(missing)} stay enabled though ssl.cipher.suites leaves them out: the suites "
        "of TLS 1.3 are all enabled, or none"
    )


def _reason(error: OSError) -> str:
    if isinstance(error, ssl.SSLError) and error.reason == "KEY_VALUES_MISMATCH":
        return "the private key does not belong to the certificate"
    return str(error.strerror or error)
