"""Tokens that need no callback: fetched with a client's credentials (OIDC), or unsecured ones.

Both are an `oauth_cb` like one that a user would write: given the text of
`sasl.oauthbearer.config`, they return the token, when it expires in seconds since the epoch, whom
it is for, and the extensions that the broker is told.
"""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable, Mapping
from typing import Any

from barnabas.client.errors import KafkaError, fail

Token = tuple[str, float, str, dict[str, str]]

TIMEOUT_S = 10
UNSECURED_LIFE_S = 3600


def client_credentials_tokens(given: Mapping[str, Any]) -> Callable[[str], Token]:
    """Ask the token endpoint, as `sasl.oauthbearer.method` oidc has it."""
    url = _needed(given, "sasl.oauthbearer.token.endpoint.url")
    client = _needed(
        given, "sasl.oauthbearer.client.id", "sasl.oauthbearer.client.credentials.client.id"
    )
    secret = _needed(
        given, "sasl.oauthbearer.client.secret", "sasl.oauthbearer.client.credentials.client.secret"
    )
    scope = given.get("sasl.oauthbearer.scope")
    subject = given.get("sasl.oauthbearer.sub.claim.name", "sub")
    extensions = _pairs(given.get("sasl.oauthbearer.extensions", ""), ",")

    def fetch(_: str) -> Token:
        from urllib.parse import urlencode
        from urllib.request import Request, urlopen

        form = {"grant_type": "client_credentials"} | ({"scope": scope} if scope else {})
        known = base64.b64encode(f"{client}:{secret}".encode()).decode()
        request = Request(
            url,
            data=urlencode(form).encode(),
            headers={"Accept": "application/json", "Authorization": f"Basic {known}"},
        )
        with urlopen(request, timeout=TIMEOUT_S) as response:
            token = json.load(response)["access_token"]
        claims = _claims(token)
        return token, float(claims["exp"]), str(claims.get(subject, client)), extensions

    return fetch


def unsecured_token(config: str) -> Token:
    """A token that nobody has signed, for brokers under test: `principal=admin scope=a,b`."""
    told = _pairs(config, " ")
    now_s = int(time.time())
    expires_s = now_s + int(told.get("lifeSeconds", UNSECURED_LIFE_S))
    claims: dict[str, Any] = {
        told.get("principalClaimName", "sub"): told.get("principal", ""),
        "iat": now_s,
        "exp": expires_s,
    }
    if "scope" in told:
        claims[told.get("scopeClaimName", "scope")] = told["scope"].split(",")
    token = f"{_encoded({'alg': 'none'})}.{_encoded(claims)}."
    extensions = {
        name.removeprefix("extension_"): value
        for name, value in told.items()
        if name.startswith("extension_")
    }
    return token, float(expires_s), told.get("principal", ""), extensions


def _needed(given: Mapping[str, Any], *names: str) -> str:
    told = next((given[name] for name in names if given.get(name)), None)
    if told is None:
        fail(KafkaError._INVALID_ARG, f'"sasl.oauthbearer.method" oidc needs "{names[0]}"')
    return str(told)


def _pairs(text: str, separator: str) -> dict[str, str]:
    entries = (entry.partition("=") for entry in text.split(separator) if entry.strip())
    return {name.strip(): value.strip() for name, _, value in entries}


def _claims(token: str) -> dict[str, Any]:
    body = token.split(".")[1]
    claims: dict[str, Any] = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
    return claims


def _encoded(part: Mapping[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=")
