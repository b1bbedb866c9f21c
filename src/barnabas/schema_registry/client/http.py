"""Requests to a registry: one of several urls, again after a failure, errors as its own."""

import json
import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlencode

from barnabas.schema_registry.client.errors import RegistryUnreachableError, SchemaRegistryError
from barnabas.schema_registry.client.settings import ClientSettings
from barnabas.schema_registry.client.transport import basic_auth, is_retriable, urllib3

_ACCEPT = (
    "application/vnd.schemaregistry.v1+json, application/vnd.schemaregistry+json, application/json"
)
_SENT = {
    "Content-Type": "application/vnd.schemaregistry.v1+json",
    "Confluent-Accept-Unknown-Properties": "true",
}


class RegistryHttp:
    """Sends requests; safe to share by threads."""

    def __init__(self, settings: ClientSettings) -> None:
        self._settings = settings
        self._sent = {"Accept": _ACCEPT, "User-Agent": "barnabas"}
        if settings.user is not None:
            self._sent["Authorization"] = basic_auth(*settings.user)
        pools = urllib3()
        keep: dict[str, Any] = {"maxsize": 8}
        if settings.tls is not None:
            keep["ssl_context"] = settings.tls
        if settings.proxy is not None:
            self._pool = pools.ProxyManager(settings.proxy, **keep)
        else:
            self._pool = pools.PoolManager(**keep)
        self._http_error = pools.exceptions.HTTPError

    def request(
        self,
        method: str,
        path: str,
        query: Mapping[str, Any] | None = None,
        body: Mapping[str, Any] | None = None,
    ) -> Any:
        """What the registry answers, of the first url that does.

        SchemaRegistryError where it refuses, RegistryUnreachableError where none answers.
        """
        headers = dict(self._sent)
        if self._settings.bearer is not None:
            headers |= self._settings.bearer.headers()
        content = None
        if body is not None:
            headers |= _SENT
            content = json.dumps(body).encode()
        if query:
            path = f"{path}?{urlencode(_words(query), doseq=True)}"

        unreachable: dict[str, str] = {}
        refused: SchemaRegistryError | None = None
        for url in self._settings.urls:
            try:
                status, answer = self._persist(method, f"{url}/{path}", headers, content)
            except self._http_error as problem:
                unreachable[url] = _reason(problem)
                continue
            if 200 <= status < 300:
                return _read(status, answer)
            refused = _refusal(status, answer)
            if not is_retriable(status):
                break
        if refused is not None:
            raise refused
        places = "; ".join(f"{url}: {why}" for url, why in unreachable.items())
        raise RegistryUnreachableError(f"no schema registry answers ({places}): is it running?")

    def close(self) -> None:
        self._pool.clear()

    def _persist(
        self, method: str, url: str, headers: Mapping[str, str], content: bytes | None
    ) -> tuple[int, bytes]:
        """One url's answer, asked again for as long as it may change."""
        for wait_s in self._settings.backoff.waits_s():
            try:
                status, answer = self._once(method, url, headers, content)
            except self._http_error:
                pass
            else:
                if not is_retriable(status):
                    return status, answer
            time.sleep(wait_s)
        return self._once(method, url, headers, content)

    def _once(
        self, method: str, url: str, headers: Mapping[str, str], content: bytes | None
    ) -> tuple[int, bytes]:
        response = self._pool.request(
            method,
            url,
            headers=headers,
            body=content,
            timeout=self._settings.timeout_s,
            retries=False,  # ours, which know a registry's answers
        )
        return response.status, response.data


def quote_path_segment(name: str) -> str:
    """A name as one step of a path, whatever is in it."""
    return quote(name, safe="")


def _words(query: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: str(value).lower() if isinstance(value, bool) else value
        for name, value in query.items()
    }


def _read(status: int, answer: bytes) -> Any:
    try:
        return json.loads(answer) if answer else None
    except ValueError:  # a proxy's page, say
        raise _foreign(status, answer) from None


def _refusal(status: int, answer: bytes) -> SchemaRegistryError:
    try:
        told = json.loads(answer)
        return SchemaRegistryError(status, told["error_code"], told["message"])
    except (ValueError, KeyError, TypeError):
        return _foreign(status, answer)


def _foreign(status: int, answer: bytes) -> SchemaRegistryError:
    text = answer.decode(errors="replace")
    return SchemaRegistryError(
        status, SchemaRegistryError.UNKNOWN, f"not a schema registry's answer: {text[:200]}"
    )


def _reason(problem: Exception) -> str:
    """Its cause alone: urllib3 wraps, and puts its own objects' addresses before it."""
    cause = problem.__cause__ or getattr(problem, "reason", None) or problem
    if isinstance(cause, OSError) and cause.strerror:
        return cause.strerror
    return str(cause).rpartition(">: ")[2] or type(cause).__name__
