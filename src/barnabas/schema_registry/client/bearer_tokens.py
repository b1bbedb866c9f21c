"""Bearer tokens for a registry: given, asked of a function, or of a token endpoint."""

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
_SHARE_OF_LIFE = 0.8
"""A token is replaced when so much of its life is over."""


class BearerSource(Protocol):
    def headers(self) -> dict[str, str]:
        """What a request needs; may ask for a new token."""
        ...


def create_bearer_source(left: dict[str, Any], backoff: RetryBackoff) -> BearerSource | None:
    """The one that the settings name, which are taken out of them."""
    match left.pop("bearer.auth.credentials.source", None):
        case None:
            return None
        case "STATIC_TOKEN":
            place = _Place.take(left)
            return StaticTokenSource(_required(left, "bearer.auth.token"), place)
        case "CUSTOM":
            function = left.pop("bearer.auth.custom.provider.function", None)
            conf = left.pop("bearer.auth.custom.provider.config", None)
            if not callable(function):
                raise TypeError("bearer.auth.custom.provider.function must be callable")
            if not isinstance(conf, dict):
                raise TypeError("bearer.auth.custom.provider.config must be a dict")
            return CustomTokenSource(function, conf)
        case "OAUTHBEARER":
            place = _Place.take(left)
            return EndpointTokenSource(_client_credentials(left), place, backoff)
        case "OAUTHBEARER_AZURE_IMDS":
            place = _Place.take(left)
            return EndpointTokenSource(_azure_identity(left), place, backoff)
        case other:
            raise ValueError(
                f"bearer.auth.credentials.source {other!r} must be STATIC_TOKEN, CUSTOM, "
                "OAUTHBEARER or OAUTHBEARER_AZURE_IMDS"
            )


@dataclass(slots=True, frozen=True)
class _Place:
    """Which registry and which identities the token is for, as Confluent's cloud asks."""

    cluster: str
    pool: str | None

    @classmethod
    def take(cls, left: dict[str, Any]) -> "_Place":
        cluster = _required(left, "bearer.auth.logical.cluster")
        pool = left.pop("bearer.auth.identity.pool.id", None)
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
    place: _Place

    def headers(self) -> dict[str, str]:
        return self.place.headers(self.token)


@dataclass(slots=True, frozen=True)
class CustomTokenSource:
    function: Callable[[dict[str, Any]], Mapping[str, Any]]
    conf: dict[str, Any]

    def headers(self) -> dict[str, str]:
        left = dict(self.function(self.conf))
        token = _required(left, "bearer.auth.token")
        return _Place.take(left).headers(token)


@dataclass(slots=True, frozen=True)
class _TokenRequest:
    method: str
    url: str
    headers: Mapping[str, str]
    form: str | None = None


@dataclass(slots=True)
class EndpointTokenSource:
    request: _TokenRequest
    place: _Place
    backoff: RetryBackoff
    _token: str = ""
    _replace_at: float = field(default=0.0)

    def headers(self) -> dict[str, str]:
        if time.monotonic() >= self._replace_at:
            self._fetch()
        return self.place.headers(self._token)

    def _fetch(self) -> None:
        pools = urllib3()
        expected = pools.exceptions.HTTPError, OAuthTokenError, ValueError, KeyError
        problem: Exception | None = None
        for wait_s in (0.0, *self.backoff.waits_s()):
            time.sleep(wait_s)
            try:
                answer = self._ask(pools)
                self._token = answer["access_token"]
                life_s = float(answer["expires_in"])
            except expected as failed:
                problem = failed
                continue
            self._replace_at = time.monotonic() + life_s * _SHARE_OF_LIFE
            return
        raise OAuthTokenError(f"{self.request.url} gave no token: {problem}") from problem

    def _ask(self, pools: ModuleType) -> dict[str, Any]:
        response = pools.request(
            self.request.method,
            self.request.url,
            headers=dict(self.request.headers),
            body=self.request.form,
            retries=False,
            timeout=30,
        )
        if response.status != 200:
            raise OAuthTokenError("refused", response.status, response.data.decode())
        answer: dict[str, Any] = json.loads(response.data)
        return answer


def _client_credentials(left: dict[str, Any]) -> _TokenRequest:
    name = _required(left, "bearer.auth.client.id")
    secret = _required(left, "bearer.auth.client.secret")
    scope = _required(left, "bearer.auth.scope")
    url = _required(left, "bearer.auth.issuer.endpoint.url")
    headers = {
        "Authorization": basic_auth(name, secret),
        "Content-Type": "application/x-www-form-urlencoded",
    }
    form = urlencode({"grant_type": "client_credentials", "scope": scope})
    return _TokenRequest("POST", url, headers, form)


def _azure_identity(left: dict[str, Any]) -> _TokenRequest:
    url = left.pop("bearer.auth.issuer.endpoint.url", None)
    query = left.pop("bearer.auth.issuer.endpoint.query", None)
    if url is None and not query:
        raise ValueError(
            "bearer.auth.issuer.endpoint.query is missing: it names the resource the token is for"
        )
    parts = urlsplit(url or _AZURE)
    if query:
        parts = parts._replace(query=query)
    return _TokenRequest("GET", urlunsplit(parts), {"Metadata": "true"})


def _required(left: dict[str, Any], name: str) -> str:
    value = left.pop(name, None)
    if value is None:
        raise ValueError(f"{name} is missing: bearer.auth.credentials.source asks for it")
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a str, not {type(value).__name__}")
    return value
