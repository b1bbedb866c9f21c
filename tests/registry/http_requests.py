"""Ask a registry over HTTP, as any program would."""

import json
import socket
from dataclasses import dataclass
from typing import Any

import urllib3

_HTTP = urllib3.PoolManager(retries=False, timeout=60)
JSON = "application/vnd.schemaregistry.v1+json"


@dataclass(slots=True, frozen=True)
class Answer:
    status: int
    content_type: str
    content: bytes
    allow: str = ""

    @property
    def json(self) -> Any:
        return json.loads(self.content)

    @property
    def error_code(self) -> int:
        told = self.json
        assert set(told) == {"error_code", "message"}
        assert told["message"]
        return int(told["error_code"])


def ask(
    url: str,
    method: str,
    path: str,
    body: object = None,
    headers: dict[str, str] | None = None,
) -> Answer:
    """`body` is sent as JSON unless it is bytes; OSError if nobody answers."""
    content = body if isinstance(body, bytes) else None if body is None else json.dumps(body)
    try:
        response = _HTTP.request(
            method, f"{url}{path}", body=content, headers={"Content-Type": JSON, **(headers or {})}
        )
    except urllib3.exceptions.HTTPError as failure:
        raise OSError(str(failure)) from failure
    told = response.headers
    return Answer(
        response.status, told.get("content-type", ""), response.data, told.get("allow", "")
    )


def half_a_request(url: str, promised_bytes: int) -> socket.socket:
    """A connection with a request on it whose body has only begun."""
    where = urllib3.util.parse_url(url)
    connection = socket.create_connection((where.host or "", where.port or 0), timeout=60)
    head = f"POST /subjects/half/versions HTTP/1.1\r\nHost: x\r\nContent-Length: {promised_bytes}"
    connection.sendall(f"{head}\r\n\r\n{{".encode())
    return connection


def record(*fields: str, name: str = "Order") -> dict[str, str]:
    """A body with the Avro schema of a record whose fields are ints."""
    types = [{"name": field, "type": "int"} for field in fields]
    return {"schema": json.dumps({"type": "record", "name": name, "fields": types})}
