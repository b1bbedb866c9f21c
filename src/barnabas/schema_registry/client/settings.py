"""The settings of the client, with confluent_kafka's names."""

import ssl
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit, urlunsplit

from barnabas.config.unknown_names import find_similar
from barnabas.schema_registry.client.bearer_tokens import BearerSource, create_bearer_source
from barnabas.schema_registry.client.transport import RetryBackoff


@dataclass(slots=True, frozen=True)
class ClientSettings:
    urls: tuple[str, ...]
    """Without a trailing slash, and without user and password."""
    user: tuple[str, str] | None
    bearer: BearerSource | None
    tls: ssl.SSLContext | None
    proxy: str | None
    timeout_s: float
    backoff: RetryBackoff
    cache_capacity: int
    latest_ttl_s: float | None

    @classmethod
    def read(cls, conf: Mapping[str, Any]) -> "ClientSettings":
        """Raises ValueError or TypeError, which name the setting, for invalid settings."""
        remaining = dict(conf)
        addresses = _addresses(remaining.pop("url", None))
        backoff = RetryBackoff(
            retries=int(_number(remaining, "max.retries", 3)),
            wait_ms=_number(remaining, "retries.wait.ms", 1000),
            max_wait_ms=_number(remaining, "retries.max.wait.ms", 20000),
        )
        settings = cls(
            urls=tuple(_without_user(address) for address in addresses),
            user=_user(addresses[0], remaining.pop("basic.auth.user.info", None)),
            tls=_tls(remaining, needed=any(item.startswith("https") for item in addresses)),
            proxy=remaining.pop("proxy", None),
            timeout_s=_number(remaining, "timeout", 60),
            backoff=backoff,
            cache_capacity=int(_number(remaining, "cache.capacity", 1000)),
            latest_ttl_s=_optional_number(remaining, "cache.latest.ttl.sec"),
            bearer=create_bearer_source(remaining, backoff),
        )
        reject_unknown_settings(remaining, _NAMES)
        return settings


def reject_unknown_settings(remaining: Mapping[str, Any], names: Iterable[str]) -> None:
    """Raises ValueError for settings that are remaining, with a suggestion."""
    for name in remaining:
        similar = find_similar(name, names)
        hint = f": did you mean {similar}?" if similar is not None else ""
        raise ValueError(f"Unrecognized properties: {', '.join(remaining)}{hint}")


_NAMES = (
    "url",
    "max.retries",
    "retries.wait.ms",
    "retries.max.wait.ms",
    "basic.auth.user.info",
    "ssl.ca.location",
    "ssl.certificate.location",
    "ssl.key.location",
    "ssl.key.password",
    "proxy",
    "timeout",
    "cache.capacity",
    "cache.latest.ttl.sec",
    "bearer.auth.credentials.source",
    "bearer.auth.token",
    "bearer.auth.logical.cluster",
    "bearer.auth.identity.pool.id",
    "bearer.auth.client.id",
    "bearer.auth.client.secret",
    "bearer.auth.scope",
    "bearer.auth.issuer.endpoint.url",
    "bearer.auth.issuer.endpoint.query",
    "bearer.auth.custom.provider.function",
    "bearer.auth.custom.provider.config",
)


def _addresses(url: Any) -> list[str]:
    if url is None:
        raise ValueError("url is missing: where the registry is, like http://localhost:8081")
    if not isinstance(url, str):
        raise TypeError(f"url must be a str, not {type(url).__name__}")
    addresses = [item.strip().rstrip("/") for item in url.split(",") if item.strip()]
    for address in addresses or [url]:
        if not address.startswith(("http://", "https://")):
            shown = address.rpartition("@")[2]  # without user and password
            raise ValueError(f"url {shown!r} must begin with http:// or https://")
    return addresses


def _without_user(address: str) -> str:
    parts = urlsplit(address)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


def _user(address: str, user_info: str | None) -> tuple[str, str] | None:
    parts = urlsplit(address)
    of_url = None
    if parts.username and parts.password is not None:
        of_url = unquote(parts.username), unquote(parts.password)
    if user_info is None:
        return of_url
    if of_url is not None:
        raise ValueError("basic.auth.user.info and the url both have a user: keep one")
    name, colon, password = user_info.partition(":")
    if not colon:
        raise ValueError("basic.auth.user.info must be user:password")
    return name, password


def _tls(remaining: dict[str, Any], *, needed: bool) -> ssl.SSLContext | None:
    authorities = remaining.pop("ssl.ca.location", None)
    certificate = remaining.pop("ssl.certificate.location", None)
    key = remaining.pop("ssl.key.location", None)
    password = remaining.pop("ssl.key.password", None)
    if certificate is None and (key is not None or password is not None):
        raise ValueError(
            "ssl.certificate.location is missing: a key is of no use without its certificate"
        )
    if not needed:
        return None
    if isinstance(authorities, str):
        if Path(authorities).is_dir():
            context = ssl.create_default_context(capath=authorities)
        else:
            context = ssl.create_default_context(cafile=authorities)
    else:
        context = ssl.create_default_context()
    if authorities is False:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if certificate is not None:
        context.load_cert_chain(certificate, key, password)
    return context


def _number(remaining: dict[str, Any], name: str, otherwise: float) -> float:
    value = _optional_number(remaining, name)
    return otherwise if value is None else value


def _optional_number(remaining: dict[str, Any], name: str) -> float | None:
    """Accepts text too, because all options of Spark are texts."""
    value = remaining.pop(name, None)
    if isinstance(value, str):
        try:
            return float(value)
        except ValueError:
            raise ValueError(f"{name} must be a number, not {value!r}") from None
    if value is not None and not isinstance(value, int | float):
        raise TypeError(f"{name} must be a number, not {type(value).__name__}")
    return value
