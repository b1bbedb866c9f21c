"""The settings of the registry's listener, with Confluent's names: address, TLS, authentication.

listeners=https://0.0.0.0:8081
ssl.keystore.location=/etc/registry.p12
authentication.method=BASIC
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Self

from barnabas.config.errors import InvalidConfig
from barnabas.config.providers import resolve_references
from barnabas.config.unknown_names import find_similar
from barnabas.net.http_authorization import METHODS, NONE
from barnabas.net.http_listener import (
    TLS_SETTINGS,
    parse_http_address,
    tls_listener_config,
)
from barnabas.net.listener_config import ListenerConfig

DEFAULT_LOGIN_LIFETIME_MS: Final = 10_000

_NAMES: Final = (
    *TLS_SETTINGS,
    "authentication.method",
    "authentication.realm",
    "barnabas.login.lifetime.ms",
    "barnabas.sasl.mechanism",
    "host.name",
    "listeners",
    "ssl.client.authentication",
)
_CLIENT_AUTH: Final = {"true": "required", "false": "none"}
"""Values of ssl.client.auth in old files of Confluent's registry."""


class RegistryConfigError(Exception):
    """The registry cannot start with these settings. The message names the setting."""


@dataclass(slots=True, frozen=True)
class RegistryListener:
    """By default plain HTTP without authentication."""

    host: str | None = None  # None: not set here
    port: int | None = None
    advertised_host: str | None = None
    tls: ListenerConfig | None = None  # None: http
    methods: tuple[str, ...] = ()  # BASIC, BEARER; none: everybody may do everything
    realm: str = "SchemaRegistry"
    basic_mechanism: str | None = None  # of logins to brokers; None: that of the registry itself
    login_lifetime_ms: int = DEFAULT_LOGIN_LIFETIME_MS

    @property
    def scheme(self) -> str:
        return "http" if self.tls is None else "https"

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> Self:
        """Raises RegistryConfigError."""
        resolved, problems = resolve_references(properties, properties)
        if problems:
            raise RegistryConfigError("; ".join(problems))
        own = {name: text for name, text in resolved.items() if not _is_of_providers(name)}
        _reject_unknown(own)
        scheme, host, port = _address(own.get("listeners"))
        has_keys = "ssl.keystore.location" in own or "ssl.keystore.key" in own
        is_https = scheme == "https" or (scheme is None and has_keys)
        return cls(
            host=host,
            port=port,
            advertised_host=own.get("host.name"),
            tls=_tls_config(own) if is_https else None,
            methods=_methods(own.get("authentication.method", NONE)),
            realm=own.get("authentication.realm") or "SchemaRegistry",
            basic_mechanism=own.get("barnabas.sasl.mechanism"),
            login_lifetime_ms=_lifetime(own.get("barnabas.login.lifetime.ms")),
        )


def _is_of_providers(name: str) -> bool:
    return name == "config.providers" or name.startswith("config.providers.")


def _reject_unknown(properties: Mapping[str, str]) -> None:
    for name in properties:
        if name not in _NAMES:
            similar = find_similar(name, _NAMES)
            hint = f"; did you mean {similar}?" if similar is not None else ""
            raise RegistryConfigError(f"{name} is not a setting of the registry's listener{hint}")


def _address(text: str | None) -> tuple[str | None, str | None, int | None]:
    if text is None:
        return None, None, None
    try:
        return parse_http_address(text)
    except InvalidConfig as error:
        raise RegistryConfigError(str(error)) from None


def _tls_config(properties: Mapping[str, str]) -> ListenerConfig:
    texts = {name: properties[name] for name in TLS_SETTINGS if name in properties}
    auth = properties.get("ssl.client.authentication", texts.get("ssl.client.auth", "none"))
    texts["ssl.client.auth"] = _CLIENT_AUTH.get(auth.lower(), auth.lower())
    try:
        return tls_listener_config("registry", texts)
    except InvalidConfig as error:
        raise RegistryConfigError(str(error)) from None


def _methods(text: str) -> tuple[str, ...]:
    names = tuple(name.strip().upper() for name in text.split(",") if name.strip())
    for name in names:
        if name not in METHODS:
            raise RegistryConfigError(
                f"authentication.method is {text}; it must be of {', '.join(METHODS)}"
            )
    return tuple(name for name in names if name != NONE)


def _lifetime(text: str | None) -> int:
    if text is None:
        return DEFAULT_LOGIN_LIFETIME_MS
    if not text.strip().isdecimal() or not 0 < int(text) <= 3_600_000:
        raise RegistryConfigError(
            f"barnabas.login.lifetime.ms is {text}; it must be from 1 to 3600000"
        )
    return int(text)
