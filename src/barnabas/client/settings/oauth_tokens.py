"""OAuth tokens without a callback: fetched with client credentials (OIDC), or unsecured.

Both are an `oauth_cb` like one that a user would write: for the text of `sasl.oauthbearer.config`
they return the token, its expiry in seconds since the epoch, the principal, and the extensions to
send to the broker.
"""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable, Mapping
from typing import Any

from barnabas.client.errors import KafkaError, fail
from barnabas.net.client_credentials import ClientCredentials, claims_of

Token = tuple[str, float, str, dict[str, str]]

UNSECURED_LIFE_S = 3600


def client_credentials_tokens(values: Mapping[str, Any]) -> Callable[[str], Token]:
    """Returns a callback that fetches tokens, as `sasl.oauthbearer.method` oidc does."""
    url = _required(values, "sasl.oauthbearer.token.endpoint.url")
    client = _required(
        values, "sasl.oauthbearer.client.id", "sasl.oauthbearer.client.credentials.client.id"
    )
    secret = _required(
        values,
        "sasl.oauthbearer.client.secret",
        "sasl.oauthbearer.client.credentials.client.secret",
    )
    subject = values.get("sasl.oauthbearer.sub.claim.name", "sub")
    extensions = _pairs(values.get("sasl.oauthbearer.extensions", ""), ",")

    credentials = ClientCredentials(url, client, secret, values.get("sasl.oauthbearer.scope"))

    def fetch(_: str) -> Token:
        token, expires_s = credentials.fetch()
        return token, expires_s, str(claims_of(token).get(subject, client)), extensions

    return fetch


def unsecured_token(config: str) -> Token:
    """Returns a token without a signature, for test brokers: `principal=admin scope=a,b`."""
    options = _pairs(config, " ")
    now_s = int(time.time())
    expires_s = now_s + int(options.get("lifeSeconds", UNSECURED_LIFE_S))
    claims: dict[str, Any] = {
        options.get("principalClaimName", "sub"): options.get("principal", ""),
        "iat": now_s,
        "exp": expires_s,
    }
    if "scope" in options:
        claims[options.get("scopeClaimName", "scope")] = options["scope"].split(",")
    token = f"{_encoded({'alg': 'none'})}.{_encoded(claims)}."
    extensions = {
        name.removeprefix("extension_"): value
        for name, value in options.items()
        if name.startswith("extension_")
    }
    return token, float(expires_s), options.get("principal", ""), extensions


def _required(values: Mapping[str, Any], *names: str) -> str:
    value = next((values[name] for name in names if values.get(name)), None)
    if value is None:
        fail(KafkaError._INVALID_ARG, f'"sasl.oauthbearer.method" oidc needs "{names[0]}"')
    return str(value)


def _pairs(text: str, separator: str) -> dict[str, str]:
    entries = (entry.partition("=") for entry in text.split(separator) if entry.strip())
    return {name.strip(): value.strip() for name, _, value in entries}


def _encoded(part: Mapping[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=")
