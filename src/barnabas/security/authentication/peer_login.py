"""How this node logs in to other nodes: with the JAAS entry of the listener that it connects to."""

import time
from collections.abc import Callable
from typing import Any

from barnabas.config import BrokerSettings
from barnabas.net.client_credentials import ClientCredentials
from barnabas.net.gssapi_login import KerberosLogin
from barnabas.net.sasl import SaslClient
from barnabas.security.authentication.errors import SaslConfigError
from barnabas.security.authentication.jaas_source import JaasSource, kerberos_service
from barnabas.security.authentication.unsecured_jwt import unsecured_token


def build_peer_login(
    settings: BrokerSettings, jaas: JaasSource, listener: str, mechanism: str
) -> SaslClient:
    """Returns the credentials for a listener. Raises SaslConfigError if there are none."""
    match mechanism:
        case "PLAIN" | "SCRAM-SHA-256" | "SCRAM-SHA-512":
            return _password_login(settings, jaas, listener, mechanism)
        case "OAUTHBEARER":
            return SaslClient(mechanism, fetch_token=_token_source(settings, jaas, listener))
        case "GSSAPI":
            return SaslClient(mechanism, kerberos=_kerberos_login(settings, jaas, listener))
    raise SaslConfigError(
        f"Nodes cannot log in to listener {listener} with {mechanism}; supported are PLAIN, "
        "SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER and GSSAPI."
    )


def _kerberos_login(settings: BrokerSettings, jaas: JaasSource, listener: str) -> KerberosLogin:
    entry = jaas.find(listener, "GSSAPI")
    name = "sasl.kerberos.service.name"
    service = entry and kerberos_service(entry, settings.for_listener(listener, name))
    if entry is None or not service:
        raise SaslConfigError(
            f"Nodes log in to listener {listener} with GSSAPI: set {name}, and keyTab and "
            f"principal in listener.name.{listener.lower()}.gssapi.sasl.jaas.config."
        )
    return KerberosLogin(service, entry.options.get("principal"), entry.options.get("keyTab"))


def _token_source(
    settings: BrokerSettings, jaas: JaasSource, listener: str
) -> Callable[[], tuple[str, float]]:
    """Returns a function that gets a token: from an endpoint, or an unsecured one."""

    def get(name: str) -> Any:
        return settings.for_listener(listener, name, "OAUTHBEARER")

    entry = jaas.find(listener, "OAUTHBEARER")
    options = entry.options if entry is not None else {}
    url = get("sasl.oauthbearer.token.endpoint.url")
    if url is None:
        if not any(name.startswith("unsecuredLogin") for name in options):
            raise SaslConfigError(
                f"Nodes log in to listener {listener} with OAUTHBEARER: set "
                "sasl.oauthbearer.token.endpoint.url, or for development "
                'unsecuredLoginStringClaim_sub="..." in its JAAS entry.'
            )
        return lambda: unsecured_token(options, time.time())
    secret = get("sasl.oauthbearer.client.credentials.client.secret")
    credentials = ClientCredentials(
        url,
        get("sasl.oauthbearer.client.credentials.client.id") or options.get("clientId", ""),
        secret.reveal() if secret is not None else options.get("clientSecret", ""),
        get("sasl.oauthbearer.scope") or options.get("sasl.oauthbearer.scope"),
    )
    return credentials.fetch


def _password_login(
    settings: BrokerSettings, jaas: JaasSource, listener: str, mechanism: str
) -> SaslClient:
    entry = jaas.find(listener, mechanism)
    if entry is not None and "username" in entry.options:
        return SaslClient(mechanism, entry.options["username"], entry.options.get("password", ""))
    username = settings.for_listener(listener, "barnabas.sasl.username")
    password = settings.for_listener(listener, "barnabas.sasl.password")
    if username is None or password is None:
        raise SaslConfigError(
            f"Nodes log in to listener {listener} with {mechanism}, and there is no user: set "
            f"listener.name.{listener.lower()}.{mechanism.lower()}.sasl.jaas.config with "
            "username and password, or barnabas.sasl.username and barnabas.sasl.password."
        )
    return SaslClient(mechanism, username, password.reveal())
