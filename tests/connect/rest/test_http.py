"""What all resources have in common."""

import asyncio
import logging

import pytest
from tests.connect.rest.asgi_client import AsgiClient
from tests.connect.rest.fake_herder import FakeHerder

from barnabas.connect.errors import ConnectError
from barnabas.connect.rest.app import create_app


def test_server_info(api: AsgiClient) -> None:
    info = api("GET", "/").json
    assert set(info) == {"version", "commit", "kafka_cluster_id"}
    assert info["kafka_cluster_id"] == "cluster-0"


@pytest.mark.parametrize(
    ("status", "code"), [("healthy", 200), ("starting", 503), ("unhealthy", 500)]
)
def test_health(api: AsgiClient, herder: FakeHerder, status: str, code: int) -> None:
    herder.health = (status, "As it is.")
    response = api("GET", "/health")
    assert (response.status, response.json) == (code, {"status": status, "message": "As it is."})


@pytest.mark.parametrize("path", ["/none", "/Connectors", "/connectors/a/tasks-config", "/a/b/c/d"])
def test_an_unknown_path_is_not_found(api: AsgiClient, path: str) -> None:
    response = api("GET", path)
    assert (response.status, response.message) == (404, "HTTP 404 Not Found")


def test_a_wrong_method_is_not_allowed(api: AsgiClient) -> None:
    response = api("POST", "/connectors/a/config", {})
    assert (response.status, response.message) == (405, "HTTP 405 Method Not Allowed")
    assert response.headers["allow"] == "GET, HEAD, OPTIONS, PATCH, PUT"


def test_options_are_listed(api: AsgiClient) -> None:
    response = api("OPTIONS", "/connectors")
    assert (response.status, response.content) == (200, b"GET, HEAD, OPTIONS, POST")


@pytest.mark.parametrize("content_type", ["text/plain", "application/x-www-form-urlencoded"])
def test_a_body_that_is_not_json_is_unsupported(api: AsgiClient, content_type: str) -> None:
    for method, path in [("POST", "/connectors"), ("PUT", "/connectors/a/pause")]:
        response = api(method, path, b"{}", content_type=content_type)
        assert (response.status, response.message) == (415, "HTTP 415 Unsupported Media Type")


def test_a_content_type_may_have_a_charset(api: AsgiClient) -> None:
    response = api("POST", "/connectors", b"[]", content_type="application/json; charset=utf-8")
    assert response.status == 500  # it was read


@pytest.mark.parametrize(
    ("accept", "status"),
    [
        ("text/plain", 406),
        ("application/json;q=0", 406),
        ("text/html, */*;q=0.1", 200),
        ("application/*", 200),
        ("", 200),
    ],
)
def test_a_response_is_json_or_not_acceptable(api: AsgiClient, accept: str, status: int) -> None:
    assert api("GET", "/connectors", accept=accept).status == status


class BrokenHerder(FakeHerder):
    error: Exception = ConnectError("The target is down")

    async def connectors(self) -> list[str]:
        raise self.error


def test_an_error_of_connect_is_reported() -> None:
    api = AsgiClient(create_app(BrokenHerder(), {}))
    response = api("GET", "/connectors")
    assert (response.status, response.message) == (500, "The target is down")


def test_an_unexpected_error_is_reported_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    herder = BrokenHerder()
    herder.error = KeyError("x")
    with caplog.at_level(logging.ERROR):
        response = AsgiClient(create_app(herder, {}))("GET", "/connectors")
    assert (response.status, response.message) == (500, "KeyError: 'x'")
    assert "GET /connectors failed" in caplog.text


class HangingHerder(FakeHerder):
    async def connectors(self) -> list[str]:
        await asyncio.Event().wait()
        return []


def test_a_request_times_out() -> None:
    api = AsgiClient(create_app(HangingHerder(), {}, timeout_s=0.01))
    response = api("GET", "/connectors")
    assert (response.status, response.message) == (500, "Request timed out")


def test_requests_between_workers_of_kafka_are_rejected(api: AsgiClient) -> None:
    for method, path, body in [
        ("POST", "/connectors/a/tasks", []),
        ("PUT", "/connectors/a/fence", None),
    ]:
        unsigned = api(method, path, body)
        assert unsigned.status == 400
        assert unsigned.message == "Internal request missing required signature"
        signature = {
            "X_Connect_Authorization": "x",
            "X_Connect_Request_Signature_Algorithm": "HmacSHA256",
        }
        signed = api(method, path, body, **signature)
        assert signed.status == 403
