"""The keys that sign tokens, from a JWKS file or URL. They are fetched in threads.

They are loaded at the start, and again every hour. A token with an unknown key id starts a refresh,
at most once a minute for each id and once a second for all: the login fails, and one after the
refresh may succeed.
"""

import asyncio
import json
import logging
import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeAlias
from urllib.parse import urlsplit

from barnabas.config import BrokerSettings
from barnabas.config.addresses import SecurityProtocol

log = logging.getLogger(__name__)

JWKS_URL: Final = "sasl.oauthbearer.jwks.endpoint.url"
OAUTHBEARER: Final = "OAUTHBEARER"
WITH_SASL: Final = (SecurityProtocol.SASL_PLAINTEXT, SecurityProtocol.SASL_SSL)

_FETCH_TIMEOUT_S = 10.0
_MAX_DOCUMENT_BYTES = 1 << 20
_UNKNOWN_KEY_INTERVAL_S = 60.0
_UNKNOWN_KEYS_INTERVAL_S = 1.0
_MAX_UNKNOWN_KEYS = 16
_MAX_KEY_ID_CHARACTERS = 1000
_SCHEMES = ("http", "https", "file")


class JwksKeys:
    """The current keys by id. Build it with `load`."""

    def __init__(
        self,
        url: str,
        *,
        refresh_ms: int,
        retry_ms: int,
        retry_max_ms: int,
        fetch: Callable[[str], bytes] | None = None,
        monotonic_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._url = url
        self._refresh_s = refresh_ms / 1000
        self._retry_s = (retry_ms / 1000, retry_max_ms / 1000)
        self._fetch = fetch or fetch_document
        self._monotonic_s = monotonic_s
        self._keys: dict[str, Any] = {}
        self._unknown: OrderedDict[str, float] = OrderedDict()  # when it was last requested
        self._requested_s = -math.inf  # when any of them was
        self._wake = threading.Event()
        self._is_closed = False
        self._thread: threading.Thread | None = None

    def load(self, document: bytes | None = None) -> None:
        """Loads the keys, of a document that was fetched already. Raises OSError or ValueError."""
        self._keys = _parse(self._fetch(self._url) if document is None else document)

    def start(self) -> None:
        """Refreshes the keys in a thread from now on."""
        self._thread = threading.Thread(target=self._run, name="jwks", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stops the thread; it may be in the middle of a fetch, and ends after it."""
        self._is_closed = True
        self._wake.set()

    def get(self, key_id: str) -> Any | None:
        """Returns a key as PyJWT has it, or None; then a refresh may start."""
        key = self._keys.get(key_id)
        if key is None and len(key_id) <= _MAX_KEY_ID_CHARACTERS:
            self._request_unknown(key_id)
        return key

    def _request_unknown(self, key_id: str) -> None:
        now_s = self._monotonic_s()
        requested_s = self._unknown.get(key_id)
        if requested_s is not None and now_s - requested_s < _UNKNOWN_KEY_INTERVAL_S:
            return
        if now_s - self._requested_s < _UNKNOWN_KEYS_INTERVAL_S:
            return  # anybody can make up ids
        self._requested_s = now_s
        self._unknown[key_id] = now_s
        self._unknown.move_to_end(key_id)
        if len(self._unknown) > _MAX_UNKNOWN_KEYS:
            self._unknown.popitem(last=False)
        self._wake.set()

    def _run(self) -> None:
        pause_s = self._refresh_s
        retry_s = self._retry_s[0]
        while True:
            self._wake.wait(pause_s)
            self._wake.clear()
            if self._is_closed:
                return
            try:
                self.load()
            except (OSError, ValueError) as error:
                log.warning("The keys of %s stay as they were: %s", self._url, error)
                pause_s, retry_s = retry_s, min(2 * retry_s, self._retry_s[1])
            else:
                pause_s, retry_s = self._refresh_s, self._retry_s[0]


Documents: TypeAlias = Mapping[str, bytes | OSError | ValueError]
"""By URL, a document, or why it could not be fetched."""


async def fetch_documents(settings: BrokerSettings) -> Documents:
    """Fetches the keys of all listeners before any of them serves: that may take seconds."""
    urls = list(dict.fromkeys(_urls(settings)))
    if not urls:
        return {}
    fetches = (asyncio.to_thread(fetch_document, url) for url in urls)
    results = await asyncio.gather(*fetches, return_exceptions=True)
    documents = dict(zip(urls, results, strict=True))
    return {
        url: result
        for url, result in documents.items()
        if isinstance(result, bytes | OSError | ValueError)
    }


def _urls(settings: BrokerSettings) -> Iterator[str]:
    for listener in settings.listeners:
        if listener.security_protocol not in WITH_SASL:
            continue
        if OAUTHBEARER in settings.for_listener(listener.name, "sasl.enabled.mechanisms"):
            url = settings.for_listener(listener.name, JWKS_URL, OAUTHBEARER)
            if url is not None:
                yield url


def fetch_document(url: str) -> bytes:
    """Fetches a document of limited size. Raises OSError or ValueError."""
    import http.client
    import urllib.request  # slow to import, and few nodes need it

    if urlsplit(url).scheme not in _SCHEMES:
        raise ValueError(f"{url} is not a URL of {', '.join(_SCHEMES)}")
    try:
        with urllib.request.urlopen(url, timeout=_FETCH_TIMEOUT_S) as response:
            content: bytes = response.read(_MAX_DOCUMENT_BYTES + 1)
    except http.client.HTTPException as error:
        raise OSError(f"the response is not HTTP: {type(error).__name__}") from None
    if len(content) > _MAX_DOCUMENT_BYTES:
        raise ValueError(f"the document has more than {_MAX_DOCUMENT_BYTES} bytes")
    return content


def _parse(document: bytes) -> dict[str, Any]:
    """Returns the keys with an id; those of unknown types are skipped."""
    from jwt import PyJWK
    from jwt.exceptions import PyJWTError

    try:
        entries = json.loads(document)["keys"]
    except (KeyError, TypeError, ValueError, RecursionError):
        raise ValueError('the document is not of the form {"keys": [...]}') from None
    keys: dict[str, Any] = {}
    for entry in entries if isinstance(entries, list) else ():
        if not isinstance(entry, dict) or entry.get("kty") not in ("RSA", "EC", "OKP"):
            continue
        try:
            key = PyJWK.from_dict(entry)
        except (PyJWTError, ValueError, TypeError):
            continue
        if isinstance(key.key_id, str):
            keys[key.key_id] = key
    if not keys:
        raise ValueError("there are no public keys with a key id in the document")
    return keys
