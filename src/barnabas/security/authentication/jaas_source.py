"""Finds the JAAS entry of a listener and mechanism: in a setting, or else in a file."""

import os
import re
from collections.abc import Mapping
from pathlib import Path

from barnabas.config import BrokerSettings
from barnabas.security.authentication.errors import SaslConfigError
from barnabas.security.authentication.jaas import (
    JaasEntry,
    JaasError,
    parse_jaas,
    parse_jaas_file,
)

_MODULES = {
    "PLAIN": "PlainLoginModule",
    "SCRAM-SHA-256": "ScramLoginModule",
    "SCRAM-SHA-512": "ScramLoginModule",
    "OAUTHBEARER": "OAuthBearerLoginModule",
    "GSSAPI": "Krb5LoginModule",
}
_FILE_PROPERTY = re.compile(r"-Djava\.security\.auth\.login\.config=(\S+)")
_SECTION = "KafkaServer"


class JaasSource:
    """The JAAS configuration of a node.

    The file is that of `barnabas.sasl.jaas.file`, or of the Java property
    `java.security.auth.login.config` in the environment variable KAFKA_OPTS.
    """

    def __init__(
        self, settings: BrokerSettings, environment: Mapping[str, str] = os.environ
    ) -> None:
        """Raises SaslConfigError if the file cannot be read."""
        self._settings = settings
        self._sections: dict[str, list[JaasEntry]] = {}
        in_options = _FILE_PROPERTY.search(environment.get("KAFKA_OPTS", ""))
        path = settings["barnabas.sasl.jaas.file"] or (in_options and in_options[1])
        if path:
            self._sections = _read(Path(path))

    def find(self, listener: str, mechanism: str) -> JaasEntry | None:
        """Returns the entry, or None. Raises SaslConfigError if it cannot be parsed."""
        name = f"listener.name.{listener.lower()}.{mechanism.lower()}.sasl.jaas.config"
        text = self._settings.get(name)
        if text is not None:
            return _parse(name, text.reveal())
        for section in (f"{listener.lower()}.{_SECTION}", _SECTION):
            for entry in self._sections.get(section, ()):
                if entry.module_name == _MODULES[mechanism]:
                    return entry
        return None


def kerberos_service(entry: JaasEntry, setting: str | None) -> str | None:
    """Returns the service name of a JAAS entry and of sasl.kerberos.service.name.

    Raises SaslConfigError if they differ.
    """
    in_entry = entry.options.get("serviceName")
    if in_entry and setting and in_entry != setting:
        raise SaslConfigError(
            f"serviceName {in_entry} of the JAAS entry differs from "
            f"sasl.kerberos.service.name {setting}."
        )
    return in_entry or setting


def _parse(name: str, text: str) -> JaasEntry:
    try:
        return parse_jaas(text)
    except JaasError as error:
        raise SaslConfigError(f"{name} cannot be read: {error}.") from None


def _read(path: Path) -> dict[str, list[JaasEntry]]:
    try:
        return parse_jaas_file(path.read_text())
    except OSError as error:
        raise SaslConfigError(f"The JAAS file {path} cannot be read: {error.strerror}.") from None
    except ValueError as error:
        raise SaslConfigError(f"The JAAS file {path} cannot be read: {error}.") from None
