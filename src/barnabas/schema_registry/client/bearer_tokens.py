"""Bearer tokens for a registry: static, from a function, or from a token endpoint."""

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, Protocol
from urllib.parse import urlencode, urlsplit, urlunsplit

from barnabas.schema_registry.client.errors import OAuthTokenError
from barnabas.schema_registry.client.transport import RetryBackoff, basic_auth, urllib3

_AZURE = "http://169.254.169.254/metadata/identity/oauth2/token"
_REFRESH_FRACTION = 0.8
"""A token is replaced after this fraction of its lifetime."""


class BearerSource(Protocol):
    def headers(self) -> dict[str, str]:
        """Returns the headers of a request. May fetch a new token."""
        ...


def create_bearer_source(settings: dict[str, Any], backoff: RetryBackoff) -> BearerSource | None:
    """Removes the settings of bearer authentication and returns the source they describe."""
    match settings.pop("bearer.auth.credentials.source", None):
        case None:
            return None
        case "STATIC_TOKEN":
            target = _TokenTarget.take(settings)
            return StaticTokenSource(_required(settings, "bearer.auth.token"), target)
        case "CUSTOM":
            function = settings.pop("bearer.auth.custom.provider.function", None)
            conf = settings.pop("bearer.auth.custom.provider.config", None)
            if not callable(function):
                raise TypeError("bearer.auth.custom.provider.function must be callable")
            if not isinstance(conf, dict):
                raise TypeError("bearer.auth.custom.provider.config must be a dict")
            return CustomTokenSource(function, conf)
        case "OAUTHBEARER":
            target = _TokenTarget.take(settings)
            return EndpointTokenSource(_client_credentials(settings), target, backoff)
        case "OAUTHBEARER_AZURE_IMDS":
            target = _TokenTarget.take(settings)
            return EndpointTokenSource(_azure_identity(settings), target, backoff)
        case other:
            raise ValueError(
                f"bearer.auth.credentials.source {other!r} must be STATIC_TOKEN, CUSTOM, "
                "OAUTHBEARER or OAUTHBEARER_AZURE_IMDS"
            )


@dataclass(slots=True, frozen=True)
class _TokenTarget:
    """The registry and the identity pools that a token is for, as Confluent Cloud requires."""

    cluster: str
    pool: str | None

    @classmethod
    def take(cls, settings: dict[str, Any]) -> "_TokenTarget":
        cluster = _required(settings, "bearer.auth.logical.cluster")
        pool = settings.pop("bearer.auth.identity.pool.id", None)
        if isinstance(pool, list):
            pool = ",".join(pool)
        if pool is not None and not isinstance(pool, str):
            raise TypeError("bearer.auth.identity.pool.id must be a str or a list of str")
        return cls(cluster, pool)

    def headers(self, token: str) -> dict[str, str]:
        headers = {"Authorization": f"Bearer {token}", "target-sr-cluster": self.cluster}
        return headers if self.pool is None else headers | {"Confluent-Identity-Pool-Id": self.pool}


@dataclass(slots=True, frozen=True)
class StaticTokenSource:
    token: str
    target: _TokenTarget

    def headers(self) -> dict[str, str]:
        return self.target.headers(self.token)


@dataclass(slots=True, frozen=True)
class CustomTokenSource:
    function: Callable[[dict[str, Any]], Mapping[str, Any]]
    conf: dict[str, Any]

    def headers(self) -> dict[str, str]:
        settings = dict(self.function(self.conf))
        token = _required(settings, "bearer.auth.token")
        return _TokenTarget.take(settings).headers(token)


@dataclass(slots=True, frozen=True)
class _TokenRequest:
    method: str
    url: str
    headers: Mapping[str, str]
    form: str | None = None


@dataclass(slots=True)
class EndpointTokenSource:
    request: _TokenRequest
    target: _TokenTarget
    backoff: RetryBackoff
    _token: str = ""
    _replace_at: float = field(default=0.0)

    def headers(self) -> dict[str, str]:
        if time.monotonic() >= self._replace_at:
            self._fetch()
        return self.target.headers(self._token)

    def _fetch(self) -> None:
        http = urllib3()
        expected = http.exceptions.HTTPError, OAuthTokenError, ValueError, KeyError
        problem: Exception | None = None
        for wait_s in (0.0, *self.backoff.waits_s()):
            time.sleep(wait_s)
            try:
                response = self._request_token(http)
                self._token = response["access_token"]
                lifetime_s = float(response["expires_in"])
            except expected as failed:
                problem = failed
                continue
            self._replace_at = time.monotonic() + lifetime_s * _REFRESH_FRACTION
            return
        raise OAuthTokenError(f"{self.request.url} returned no token: {problem}") from problem

    def _request_token(self, http: ModuleType) -> dict[str, Any]:
        response = http.request(
            self.request.method,
            self.request.url,
            headers=dict(self.request.headers),
            body=self.request.form,
            retries=False,
            timeout=30,
        )
        if response.status != 200:
            raise OAuthTokenError("rejected", response.status, response.data.decode())
        content: dict[str, Any] = json.loads(response.data)
        return content


def _client_credentials(settings: dict[str, Any]) -> _TokenRequest:
    name = _required(settings, "bearer.auth.client.id")
    secret = _required(settings, "bearer.auth.client.secret")
    scope = _required(settings, "bearer.auth.scope")
    url = _required(settings, "bearer.auth.issuer.endpoint.url")
    headers = {
        "Authorization": basic_auth(name, secret),
        "Content-Type": "application/x-www-form-urlencoded",
    }
    form = urlencode({"grant_type": "client_credentials", "scope": scope})
    return _TokenRequest("POST", url, headers, form)


def _azure_identity(settings: dict[str, Any]) -> _TokenRequest:
    url = settings.pop("bearer.auth.issuer.endpoint.url", None)
    query = settings.pop("bearer.auth.issuer.endpoint.query", None)
    if url is None and not query:
        raise ValueError(
            "bearer.auth.issuer.endpoint.query is missing: it names the resource the token is for"
        )
    parts = urlsplit(url or _AZURE)
    if query:
        parts = parts._replace(query=query)
    return _TokenRequest("GET", urlunsplit(parts), {"Metadata": "true"})


def _required(settings: dict[str, Any], name: str) -> str:
    value = settings.pop(name, None)
    if value is None:
        raise ValueError(f"{name} is missing: bearer.auth.credentials.source requires it")
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a str, not {type(value).__name__}")
    return value
