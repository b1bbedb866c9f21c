"""HTTP requests to a registry, and bodies for them."""

import json
import socket
from dataclasses import dataclass
from typing import Any

import urllib3

_HTTP = urllib3.PoolManager(retries=False, timeout=60)
JSON = "application/vnd.schemaregistry.v1+json"


@dataclass(slots=True, frozen=True)
class HttpResponse:
    status: int
    content_type: str
    content: bytes
    allow: str = ""

    @property
    def json(self) -> Any:
        return json.loads(self.content)

    @property
    def error_code(self) -> int:
        expected = self.json
        assert set(expected) == {"error_code", "message"}
        assert expected["message"]
        return int(expected["error_code"])


def send_request(
    url: str,
    method: str,
    path: str,
    body: object = None,
    headers: dict[str, str] | None = None,
) -> HttpResponse:
    """Sends `body` as JSON unless it is bytes. Raises OSError without a response."""
    content = body if isinstance(body, bytes) else None if body is None else json.dumps(body)
    try:
        response = _HTTP.request(
            method, f"{url}{path}", body=content, headers={"Content-Type": JSON, **(headers or {})}
        )
    except urllib3.exceptions.HTTPError as failure:
        raise OSError(str(failure)) from failure
    expected = response.headers
    return HttpResponse(
        response.status, expected.get("content-type", ""), response.data, expected.get("allow", "")
    )


def half_a_request(url: str, promised_bytes: int) -> socket.socket:
    """Returns a connection with a request whose body is incomplete."""
    where = urllib3.util.parse_url(url)
    connection = socket.create_connection((where.host or "", where.port or 0), timeout=60)
    head = f"POST /subjects/half/versions HTTP/1.1\r\nHost: x\r\nContent-Length: {promised_bytes}"
    connection.sendall(f"{head}\r\n\r\n{{".encode())
    return connection


def record(*fields: str, name: str = "Order") -> dict[str, str]:
    """Returns a body with the Avro schema of a record whose fields are ints."""
    types = [{"name": field, "type": "int"} for field in fields]
    return {"schema": json.dumps({"type": "record", "name": name, "fields": types})}
