"""Requests that a follower passes on to the leader."""

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest
from tests.connect.rest.asgi_client import HOST, AsgiClient
from tests.connect.rest.fake_herder import FakeHerder

from barnabas.testing.ports import free_port


@dataclass(slots=True)
class Leader:
    """Responds with what a test sets, and keeps the requests."""

    port: int = 0
    status: int = 201
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b"{}"
    requests: list[tuple[str, str, bytes, dict[str, str]]] = field(default_factory=list)


@pytest.fixture
def leader(herder: FakeHerder) -> Iterator[Leader]:
    """An HTTP server, of which the herder is a follower."""
    leader = Leader()

    class Handler(BaseHTTPRequestHandler):
        def respond(self) -> None:
            content = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            headers = {name.lower(): value for name, value in self.headers.items()}
            leader.requests.append((self.command, self.path, content, headers))
            self.send_response(leader.status)
            for name, value in leader.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(leader.body)))
            self.end_headers()
            self.wfile.write(leader.body)

        do_POST = do_PUT = do_DELETE = respond  # noqa: N815 - names of the base class

        def log_message(self, *args: object) -> None: ...

    server = HTTPServer(("127.0.0.1", 0), Handler)
    leader.port = server.server_port
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    herder.is_leader = False
    herder.leader_url = f"http://127.0.0.1:{leader.port}/"
    yield leader
    server.shutdown()
    thread.join()
    server.server_close()


def test_the_leaders_response_is_returned(
    api: AsgiClient, leader: Leader, sink: dict[str, Any]
) -> None:
    leader.headers = {
        "Content-Type": "application/json",
        "Location": "http://leader:8083/connectors/a%2Fb",
    }
    leader.body = b'{"name":"a/b"}'
    response = api("POST", "/connectors", {"name": "a/b", "config": sink}, authorization="Basic x")
    assert (response.status, response.json) == (201, {"name": "a/b"})
    assert response.headers["location"] == f"http://{HOST}/connectors/a%2Fb"
    ((method, path, content, headers),) = leader.requests
    assert (method, path) == ("POST", "/connectors?forward=true")
    assert json.loads(content) == {"name": "a/b", "config": sink}
    assert headers["authorization"] == "Basic x"
    assert headers["content-type"] == "application/json"


def test_path_and_query_are_kept(
    api: AsgiClient, herder: FakeHerder, leader: Leader, sink: dict[str, Any]
) -> None:
    leader.status = 200
    path = "/connectors/a%2Fb%20%C3%BC%3F%23/config"
    assert api("PUT", f"{path}?x=%26&forward=true", sink).status == 200
    assert leader.requests[0][1] == f"{path}?x=%26&forward=false"


def test_a_name_of_dots_is_not_removed(
    api: AsgiClient, herder: FakeHerder, leader: Leader, sink: dict[str, Any]
) -> None:
    api("PUT", "/connectors/%2E%2E/config", sink)
    assert leader.requests[0][1] == "/connectors/%2E%2E/config?forward=true"


def test_an_error_of_the_leader_is_returned(
    api: AsgiClient, leader: Leader, sink: dict[str, Any]
) -> None:
    leader.status = 409
    leader.body = b'{"error_code":409,"message":"Connector a already exists"}'
    response = api("POST", "/connectors", {"name": "a", "config": sink})
    assert (response.status, response.message) == (409, "Connector a already exists")


def test_there_are_at_most_two_hops(api: AsgiClient, leader: Leader, sink: dict[str, Any]) -> None:
    response = api("PUT", "/connectors/a/config?forward=false", sink)
    assert response.status == 409
    assert response.message == (
        "Cannot complete request because of a conflicting operation (e.g. worker rebalance)"
    )
    assert leader.requests == []


def test_without_a_leader_the_request_conflicts(
    api: AsgiClient, herder: FakeHerder, sink: dict[str, Any]
) -> None:
    herder.is_leader = False
    response = api("PUT", "/connectors/a/config", sink)
    assert response.status == 409
    assert response.message.startswith(
        "Cannot complete request momentarily due to no known leader URL"
    )


def test_a_leader_that_is_down_is_an_error(
    api: AsgiClient, herder: FakeHerder, sink: dict[str, Any]
) -> None:
    herder.is_leader = False
    herder.leader_url = f"http://127.0.0.1:{free_port()}"
    response = api("PUT", "/connectors/a/config", sink)
    assert response.status == 500
    assert response.message.startswith("IO Error trying to forward REST request: ")
