"""The REST API of Connect: a client, and files with the settings of connectors."""

import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from barnabas.cli.operations.errors import CommandError, UnreadableFileError
from barnabas.config.properties import parse_properties

DEFAULT_URL = "http://localhost:8083"

_TIMEOUT_S = 100.0
"""Workers take up to 90 s for a request."""


class ConnectUnreachableError(CommandError):
    """No worker responds at the URL."""


class ConnectClient:
    """Sends requests to a worker. Raises CommandError with the worker's message."""

    def __init__(self, url: str, *, timeout_s: float = _TIMEOUT_S) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise CommandError(f"{url!r} is not a URL such as {DEFAULT_URL}")
        self.url = url.rstrip("/")
        self._timeout_s = timeout_s

    def get(self, *path: str, query: str = "") -> Any:
        return self.send("GET", *path, query=query)

    def send(self, method: str, *path: str, body: object = None, query: str = "") -> Any:
        """Returns the content of the response, or None if it has none."""
        segments = "/".join(quote(segment, safe="") for segment in path)
        content = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            f"{self.url}/{segments}{f'?{query}' if query else ''}",
            content,
            {"Accept": "application/json", "Content-Type": "application/json"},
            method=method,
        )
        try:
            with urllib.request.urlopen(request, timeout=self._timeout_s) as response:
                return _parse(response.read())
        except urllib.error.HTTPError as error:
            raise CommandError(_message(error)) from None
        except (OSError, ValueError) as error:
            reason = getattr(error, "reason", error)
            text = getattr(reason, "strerror", None) or str(reason)
            raise ConnectUnreachableError(f"{self.url}: {text}.") from None


def _parse(content: bytes) -> Any:
    return json.loads(content) if content.strip() else None


def _message(error: urllib.error.HTTPError) -> str:
    try:
        message: str = json.loads(error.read())["message"]
    except (ValueError, KeyError, TypeError, OSError):
        return f"the worker returned HTTP status {error.code}"
    return message


def read_connector_file(file: Path) -> tuple[str, dict[str, str], str | None]:
    """Returns the name, the settings and the initial state of a connector.

    The file is in JSON, as the REST API takes it or only the settings, or a properties file.
    """
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        raise UnreadableFileError(file, error) from None
    except ValueError:
        raise CommandError(f"{file} is not text in UTF-8") from None
    if text.lstrip().startswith("{"):
        return _from_json(file, text)
    try:
        config = parse_properties(text)
    except ValueError as error:
        raise CommandError(f"{file}: {error}") from None
    return _named(file, config.get("name"), config), config, None


def connector_of(source: str, pairs: Mapping[str, str]) -> tuple[str, dict[str, str], str | None]:
    """Returns what a file has, or else the settings of a command line for the name `source`."""
    if Path(source).is_file():
        name, config, state = read_connector_file(Path(source))
        return name, {**config, **pairs}, state
    if not pairs:
        raise CommandError(
            f"{source} is no file; for a connector of this name, add its settings as KEY=VALUE, "
            "beginning with connector.class"
        )
    return source, {"name": source, **pairs}, None


def is_connector_file(file: Path) -> bool:
    """Whether a file has the settings of a connector, and not those of a worker."""
    try:
        text = file.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise UnreadableFileError(file, error) from None
    if text.lstrip().startswith("{"):
        return True
    try:
        return "connector.class" in parse_properties(text)
    except ValueError:
        return False


def _from_json(file: Path, text: str) -> tuple[str, dict[str, str], str | None]:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CommandError(f"{file} is not JSON: {error}") from None
    config = document.get("config", document)
    if not isinstance(config, dict):
        raise CommandError(f"{file}: config must be an object of settings")
    settings = {name: _setting_text(file, name, value) for name, value in config.items()}
    name = _named(file, document.get("name"), settings)
    state = document.get("initial_state") if "config" in document else None
    return name, {**settings, "name": name}, state


def _setting_text(file: Path, name: str, value: object) -> str:
    match value:
        case str():
            return value
        case bool():
            return str(value).lower()
        case int() | float():
            return str(value)
        case _:
            raise CommandError(f"{file}: {name} must be text or a number")


def _named(file: Path, name: object, config: Mapping[str, str]) -> str:
    found = name or config.get("name")
    if not isinstance(found, str) or not found:
        raise CommandError(f"{file}: name is missing, which every connector needs")
    return found
