"""The settings of the listener of an HTTP service: its address and TLS."""

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from barnabas.config.errors import InvalidConfig
from barnabas.net.listener_config import ListenerConfig

TLS_SETTINGS: Final = (
    "ssl.cipher.suites",
    "ssl.client.auth",
    "ssl.enabled.protocols",
    "ssl.endpoint.identification.algorithm",
    "ssl.key.password",
    "ssl.keystore.certificate.chain",
    "ssl.keystore.key",
    "ssl.keystore.location",
    "ssl.keystore.password",
    "ssl.keystore.type",
    "ssl.truststore.certificates",
    "ssl.truststore.location",
    "ssl.truststore.password",
    "ssl.truststore.type",
)


def parse_http_address(text: str) -> tuple[str, str, int]:
    """Returns scheme, host (empty: every interface) and port. Raises InvalidConfig."""
    try:
        parts = urlsplit(text.strip())
        port = parts.port
    except ValueError:
        port = None
    if "," in text or port is None or parts.scheme not in ("http", "https"):
        raise InvalidConfig(
            f"listeners is {text}; it must be one address, such as https://0.0.0.0:8081"
        )
    return parts.scheme, parts.hostname or "", port


def tls_listener_config(service: str, texts: Mapping[str, str]) -> ListenerConfig:
    """Returns the settings of TLS with their defaults. Raises InvalidConfig."""
    from barnabas.config.broker.security import SETTINGS

    parsed: dict[str, Any] = {
        name: SETTINGS[name].parse(texts[name]) for name in TLS_SETTINGS if name in texts
    }
    return ListenerConfig(service, {name: SETTINGS[name].default for name in TLS_SETTINGS} | parsed)
