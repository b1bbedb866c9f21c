"""Sends requests to an application without a socket."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from starlette.types import ASGIApp, Message

HOST = "worker-1:8083"


@dataclass(slots=True, frozen=True)
class Response:
    status: int
    headers: Mapping[str, str]
    content: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.content)

    @property
    def message(self) -> str:
        """The message of an error, whose code has to be the status."""
        content = self.json
        assert content["error_code"] == self.status
        return str(content["message"])


class AsgiClient:
    """Sends one request at a time."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    def __call__(self, method: str, path: str, body: object = None, **headers: str) -> Response:
        """A body of bytes is sent as it is, any other as JSON."""
        content = body if isinstance(body, bytes) else b""
        if body is not None and not isinstance(body, bytes):
            content = json.dumps(body).encode()
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        if body is not None:
            named.setdefault("content-type", "application/json")
        return asyncio.run(self._send(method, path, content, named))

    async def _send(
        self, method: str, target: str, content: bytes, headers: Mapping[str, str]
    ) -> Response:
        path, _, query = target.partition("?")
        scope = {
            "type": "http",
            "method": method,
            "scheme": "http",
            "path": unquote(path),
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "root_path": "",
            "headers": [
                (b"host", HOST.encode()),
                *((name.lower().encode(), value.encode()) for name, value in headers.items()),
            ],
            "server": ("worker-1", 8083),
        }
        sent: list[Message] = []

        async def receive() -> Message:
            return {"type": "http.request", "body": content, "more_body": False}

        async def send(message: Message) -> None:
            sent.append(message)

        try:
            await self._app(scope, receive, send)
        except Exception:
            if not sent:  # Starlette raises unexpected errors again after the response
                raise
        start, *parts = sent
        received = {name.decode(): value.decode() for name, value in start["headers"]}
        return Response(
            start["status"], received, b"".join(part.get("body", b"") for part in parts)
        )
