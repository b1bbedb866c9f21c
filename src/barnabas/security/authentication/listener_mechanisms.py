"""Builds the `SaslServer` of a listener from the settings of the node."""

import logging
from collections.abc import Callable
from pathlib import Path
from types import MappingProxyType
from typing import Any

from barnabas.config import BrokerSettings
from barnabas.net.http_authorization import BEARER
from barnabas.security.authentication.errors import SaslConfigError
from barnabas.security.authentication.exchange import ServerExchange
from barnabas.security.authentication.gssapi_exchange import KerberosAcceptor
from barnabas.security.authentication.http_authenticator import HttpAuthenticator
from barnabas.security.authentication.jaas_source import JaasSource, kerberos_service
from barnabas.security.authentication.jwks import JWKS_URL, OAUTHBEARER, Documents
from barnabas.security.authentication.oauthbearer import OAuthBearerExchange, TokenValidator
from barnabas.security.authentication.plain import PlainExchange
from barnabas.security.authentication.sasl_server import SaslMechanism, SaslServer
from barnabas.security.authentication.scram import ScramCredentials, ScramExchange
from barnabas.security.authentication.token_validators import VALIDATOR_CLASSES, TokenValidators
from barnabas.security.authentication.users import (
    FixedUsers,
    PasswordUsers,
    PasswordVerifier,
    UsersFile,
    jaas_users,
    parse_users,
)
from barnabas.security.scram_credentials import ScramMechanismCode

log = logging.getLogger(__name__)

_CALLBACK_HANDLER = "sasl.server.callback.handler.class"
_Start = Callable[[], ServerExchange]


class ListenerMechanisms:
    """Creates the mechanisms of one listener. Raises SaslConfigError."""

    def __init__(
        self,
        settings: BrokerSettings,
        listener: str,
        jaas: JaasSource,
        credentials: ScramCredentials,
        documents: Documents = MappingProxyType({}),
    ) -> None:
        """`documents` are the JWKS that were fetched already."""
        self._documents = documents
        self._settings = settings
        self._listener = listener
        self._jaas = jaas
        self._credentials = credentials
        self._background: list[Callable[[], None]] = []  # called to stop it

    def build(self) -> SaslServer:
        """Returns the server with all enabled mechanisms."""
        names = self._settings.for_listener(self._listener, "sasl.enabled.mechanisms")
        if not names:
            raise SaslConfigError(
                f"Listener {self._listener} has SASL, and sasl.enabled.mechanisms is empty."
            )
        self._warn_of_ignored_jaas()
        return SaslServer(
            {name: self._mechanism(name) for name in names},
            max_receive_bytes=self._get("sasl.server.max.receive.size"),
            failure_delay_ms=self._get("connection.failed.authentication.delay.ms"),
            on_close=self.close,
        )

    def _mechanism(self, name: str) -> SaslMechanism:
        return SaslMechanism(self._starter(name), self._get("connections.max.reauth.ms", name))

    def _starter(self, name: str) -> _Start:
        match name:
            case "PLAIN":
                return self._plain()
            case "SCRAM-SHA-256" | "SCRAM-SHA-512":
                mechanism = ScramMechanismCode[name.replace("-", "_")]
                self._reject_callback_handler(name)
                return lambda: ScramExchange(mechanism, self._credentials)
            case "OAUTHBEARER":
                return self._oauthbearer()
            case "GSSAPI":
                return self._gssapi()
        raise SaslConfigError(
            f"sasl.enabled.mechanisms of listener {self._listener} has {name}; supported are "
            "PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER and GSSAPI."
        )

    def _oauthbearer(self) -> _Start:
        validator = self._token_validator()
        return lambda: OAuthBearerExchange(validator)

    def _token_validator(self) -> TokenValidator:
        if self._get(_CALLBACK_HANDLER, "OAUTHBEARER") not in (None, *VALIDATOR_CLASSES):
            self._reject_callback_handler("OAUTHBEARER")
        validators = TokenValidators(
            self._listener,
            lambda name: self._get(name, "OAUTHBEARER"),
            self._jaas.find(self._listener, "OAUTHBEARER"),
            self._documents,
        )
        validator = validators.build()
        self._background.append(validators.close)
        return validator

    def _gssapi(self) -> _Start:
        entry = self._jaas.find(self._listener, "GSSAPI")
        if entry is None or "principal" not in entry.options:
            raise SaslConfigError(
                f"Listener {self._listener} has GSSAPI: set "
                f"listener.name.{self._listener.lower()}.gssapi.sasl.jaas.config to "
                "com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true "
                'keyTab="..." principal="kafka/host@REALM";'
            )
        service = kerberos_service(entry, self._get("sasl.kerberos.service.name"))
        principal = entry.options["principal"]
        if service is not None and principal.partition("/")[0] != service:
            raise SaslConfigError(
                f"The principal {principal} of GSSAPI on listener {self._listener} is not one of "
                f"the service {service} (sasl.kerberos.service.name)."
            )
        return KerberosAcceptor(
            principal,
            entry.options.get("keyTab"),
            self._get("sasl.kerberos.principal.to.local.rules"),
        ).start

    def build_http(self, methods: tuple[str, ...]) -> HttpAuthenticator:
        """Returns what authenticates clients of HTTP with the users of this listener.

        Unlike Kafka's listeners, HTTP never accepts tokens without a signature. Raises
        SaslConfigError.
        """
        if BEARER in methods and self._get(JWKS_URL, OAUTHBEARER) is None:
            raise SaslConfigError(
                f"{BEARER} needs the keys that sign tokens: set {JWKS_URL}, maybe with the prefix "
                f"listener.name.{self._listener.lower()}.{OAUTHBEARER.lower()}."
            )
        tokens = self._token_validator() if BEARER in methods else None
        return HttpAuthenticator(
            methods, self._credentials, PasswordVerifier(self._password_users()), tokens
        )

    def _password_users(self) -> list[PasswordUsers]:
        sources: list[PasswordUsers] = []
        entry = self._jaas.find(self._listener, "PLAIN")
        if entry is not None:
            sources.append(FixedUsers(jaas_users(entry.options)))
        return sources + self._plain_users()

    def _plain(self) -> _Start:
        self._reject_callback_handler("PLAIN")
        sources = self._password_users()
        if not sources:
            raise SaslConfigError(
                f"Listener {self._listener} has PLAIN and no users: set "
                f"listener.name.{self._listener.lower()}.plain.sasl.jaas.config with "
                'user_<name>="<password>" options, or barnabas.sasl.users, or '
                "barnabas.sasl.users.file."
            )
        verifier = PasswordVerifier(sources)
        return lambda: PlainExchange(verifier)

    def _plain_users(self) -> list[PasswordUsers]:
        """Returns the users of the settings that need no JAAS."""
        sources: list[PasswordUsers] = []
        name = "barnabas.sasl.users"
        try:
            if (users := self._get(name)) is not None:
                sources.append(FixedUsers(parse_users(users.reveal().split(","))))
            name = "barnabas.sasl.users.file"
            if path := self._get(name):
                sources.append(UsersFile(Path(path)))
        except (OSError, ValueError) as error:
            raise SaslConfigError(f"{name} cannot be read: {error}.") from None
        return sources

    def _get(self, name: str, mechanism: str | None = None) -> Any:
        return self._settings.for_listener(self._listener, name, mechanism)

    def _reject_callback_handler(self, mechanism: str) -> None:
        """A Java class may restrict who can log in: to ignore it is worse than not to start."""
        if handler := self._get(_CALLBACK_HANDLER, mechanism):
            raise SaslConfigError(
                f"{_CALLBACK_HANDLER} of {mechanism} on listener {self._listener} is "
                f"{handler}; Java classes are not loaded."
            )

    def _warn_of_ignored_jaas(self) -> None:
        for name in (
            "sasl.jaas.config",
            f"listener.name.{self._listener.lower()}.sasl.jaas.config",
        ):
            if self._settings.get(name) is not None:
                log.warning(
                    "%s has no effect: on a server it needs the prefix "
                    "listener.name.<listener>.<mechanism>",
                    name,
                )

    def close(self) -> None:
        for stop in self._background:
            stop()
