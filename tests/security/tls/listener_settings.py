"""The settings of a listener with certificates of the test's authority."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.tls_certificates import Issued, castle_authority

from barnabas.config import SecurityProtocol
from barnabas.config.broker import SETTINGS, find
from barnabas.net.listener_config import ListenerConfig
from barnabas.security.tls.listener_tls import ListenerTls


def typed(settings: Mapping[str, str]) -> dict[str, Any]:
    """Returns all settings of a node with their types."""
    values = {name: setting.default for name, setting in SETTINGS.items()}
    for name, text in settings.items():
        setting = find(name)
        assert setting is not None, name
        values[name] = setting.parse(text)
    return values


def pem_settings(folder: Path, issued: Issued, name: str = "server") -> dict[str, str]:
    """Returns the settings of a key store and a trust store in PEM files."""
    return {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": issued.write_pem(folder, name),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": castle_authority().write_pem(folder),
    }


def listener_tls(
    settings: Mapping[str, str],
    protocol: SecurityProtocol = SecurityProtocol.SSL,
    *,
    is_connected_to: bool = False,
) -> ListenerTls:
    """Returns the TLS of a listener with the name SECURE."""
    config = ListenerConfig("SECURE", typed(settings))
    return ListenerTls(config, protocol, is_connected_to=is_connected_to)
