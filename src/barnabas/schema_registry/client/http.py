"""Sends requests to a registry: to one of several URLs, with retries; raises its errors."""

import json
import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from barnabas.schema_registry.client.errors import RegistryUnreachableError, SchemaRegistryError
from barnabas.schema_registry.client.settings import ClientSettings
from barnabas.schema_registry.client.transport import basic_auth, is_retriable, urllib3

_ACCEPT = (
    "application/vnd.schemaregistry.v1+json, application/vnd.schemaregistry+json, application/json"
)
_BODY_HEADERS = {
    "Content-Type": "application/vnd.schemaregistry.v1+json",
    "Confluent-Accept-Unknown-Properties": "true",
}


class RegistryHttp:
    """Sends requests. Thread-safe."""

    def __init__(self, settings: ClientSettings) -> None:
        self._settings = settings
        self._headers = {"Accept": _ACCEPT, "User-Agent": "barnabas"}
        if settings.user is not None:
            self._headers["Authorization"] = basic_auth(*settings.user)
        http = urllib3()
        options: dict[str, Any] = {"maxsize": 8}
        if settings.tls is not None:
            options["ssl_context"] = settings.tls
        if settings.proxy is not None:
            self._pool = http.ProxyManager(settings.proxy, **options)
        else:
            self._pool = http.PoolManager(**options)
        self._http_error = http.exceptions.HTTPError

    def request(
        self,
        method: str,
        path: str,
        query: Mapping[str, Any] | None = None,
        body: Mapping[str, Any] | None = None,
    ) -> Any:
        """Returns the JSON response of the first URL that responds.

        Parameters of the query that are None are omitted. Raises SchemaRegistryError for an error
        response, RegistryUnreachableError if no registry responds.
        """
        headers = dict(self._headers)
        if self._settings.bearer is not None:
            headers |= self._settings.bearer.headers()
        body_bytes = None
        if body is not None:
            headers |= _BODY_HEADERS
            body_bytes = json.dumps(body).encode()
        if encoded_query := urlencode(_to_json_words(query or {}), doseq=True):
            path = f"{path}?{encoded_query}"

        unreachable: dict[str, str] = {}
        error: SchemaRegistryError | None = None
        for url in self._settings.urls:
            try:
                status, content = self._request_with_retries(
                    method, f"{url}/{path}", headers, body_bytes
                )
            except self._http_error as problem:
                unreachable[url] = _reason(problem)
                continue
            if 200 <= status < 300:
                return _parse_response(status, content)
            error = _parse_error(status, content)
            if not is_retriable(status):
                break
        if error is not None:
            raise error
        reasons = "; ".join(f"{url}: {why}" for url, why in unreachable.items())
        raise RegistryUnreachableError(f"no schema registry responds ({reasons}): is it running?")

    def close(self) -> None:
        self._pool.clear()

    def _request_with_retries(
        self, method: str, url: str, headers: Mapping[str, str], content: bytes | None
    ) -> tuple[int, bytes]:
        """Requests one URL, again while the response is retriable."""
        for wait_s in self._settings.backoff.waits_s():
            try:
                status, response = self._request_once(method, url, headers, content)
            except self._http_error:
                pass
            else:
                if not is_retriable(status):
                    return status, response
            time.sleep(wait_s)
        return self._request_once(method, url, headers, content)

    def _request_once(
        self, method: str, url: str, headers: Mapping[str, str], content: bytes | None
    ) -> tuple[int, bytes]:
        response = self._pool.request(
            method,
            url,
            headers=headers,
            body=content,
            timeout=self._settings.timeout_s,
            retries=False,  # `_request_with_retries` does that
        )
        return response.status, response.data


def _to_json_words(query: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: str(value).lower() if isinstance(value, bool) else value
        for name, value in query.items()
        if value is not None
    }


def _parse_response(status: int, content: bytes) -> Any:
    try:
        return json.loads(content) if content else None
    except ValueError:  # for example a proxy's page
        raise _unknown_error(status, content) from None


def _parse_error(status: int, content: bytes) -> SchemaRegistryError:
    try:
        fields = json.loads(content)
        return SchemaRegistryError(status, fields["error_code"], fields["message"])
    except (ValueError, KeyError, TypeError):
        return _unknown_error(status, content)


def _unknown_error(status: int, content: bytes) -> SchemaRegistryError:
    text = content.decode(errors="replace")
    return SchemaRegistryError(
        status, SchemaRegistryError.UNKNOWN, f"not a schema registry's response: {text[:200]}"
    )


def _reason(problem: Exception) -> str:
    """Returns the cause only: urllib3 wraps it in text with addresses of its own objects."""
    cause = problem.__cause__ or getattr(problem, "reason", None) or problem
    if isinstance(cause, OSError) and cause.strerror:
        return cause.strerror
    return str(cause).rpartition(">: ")[2] or type(cause).__name__
