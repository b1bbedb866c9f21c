"""A registry that returns scripted responses, and records the requests."""

import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(slots=True, frozen=True)
class ReceivedRequest:
    method: str
    path: str
    headers: dict[str, str]
    body: Any


@dataclass(slots=True)
class ScriptedRegistry:
    url: str = ""
    requests: list[ReceivedRequest] = field(default_factory=list)
    responses: list[tuple[int, Any]] = field(default_factory=list)
    """Returned in order; the last one repeatedly."""

    def will_respond(self, *answers: tuple[int, Any]) -> None:
        self.responses[:] = answers
        self.requests.clear()

    @property
    def paths(self) -> list[str]:
        return [f"{item.method} {item.path}" for item in self.requests]


@contextmanager
def scripted_registry(tls: ssl.SSLContext | None = None) -> Iterator[ScriptedRegistry]:
    script = ScriptedRegistry()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def response(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = self.rfile.read(length)
            is_json = "json" in (self.headers.get("Content-Type") or "")
            script.requests.append(
                ReceivedRequest(
                    self.command,
                    self.path,
                    dict(self.headers.items()),
                    json.loads(body) if body and is_json else body.decode() or None,
                )
            )
            status, response = script.responses[0]
            if len(script.responses) > 1:
                del script.responses[0]
            content = response if isinstance(response, bytes) else json.dumps(response).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_PUT = do_DELETE = response  # noqa: N815

        def log_message(self, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    script.url = f"{'http' if tls is None else 'https'}://127.0.0.1:{server.server_port}"
    try:
        yield script
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
